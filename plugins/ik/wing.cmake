ggufmill_type_family(ik host/type_family.cpp host/interleaved_layouts.cpp)
ggufmill_embedded(recipes recipes)
