ggufmill_type_family(ik host/type_family.cpp)
ggufmill_embedded(recipes recipes)
