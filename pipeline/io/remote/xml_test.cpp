#include "pipeline/io/remote/xml.h"
#include "tests/support/catch.h"

using namespace ggufmill::remote;

TEST_CASE("documents of buckets are read with and without namespaces") {
  const auto plain = parse_xml(
      "<?xml version=\"1.0\"?>\n<!-- a > b --> <List x='<1' y=\">\">\n<Part><N>1</N></Part><Part><N> 2 "
      "</N></Part></List>\n");
  CHECK_FALSE(plain);  // an attribute contains <
  const auto list = parse_xml(
      "\xef\xbb\xbf  <?xml version=\"1.0\"?>\n<s3:List xmlns:s3='http://x/' y=\">\"><s3:Part><s3:N>1</s3:N></s3:Part>"
      "<Part ><N>&quot;a&amp;&#34;&#x41;</N></Part ><Empty/><![CDATA[<b>]]></s3:List>\n<!-- end -->");
  REQUIRE(list);
  CHECK(list->name == "List");
  CHECK(list->text == "<b>");
  REQUIRE(list->children.size() == 3);
  CHECK(list->children[0].text_of("N") == "1");
  CHECK(list->children[1].text_of("N") == "\"a&\"A");
  CHECK(list->child("Empty"));
  CHECK(list->text_of("none").empty());
}

TEST_CASE("text that is not exactly one complete document is refused") {
  const std::string deep = [] {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "<a>";
    for (int i = 0; i < 100; ++i) text += "</a>";
    return text;
  }();
  for (const std::string& text :
       {std::string(), std::string("   "), std::string("text"), std::string("<a>"), std::string("<a></b>"),
        std::string("<a/><b/>"), std::string("<a><b></a></b>"), std::string("<a>&undefined;</a>"),
        std::string("<a>&#0;</a>"), std::string("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
        std::string("<html><br></html>"), std::string("<:a/>"), std::string("<a:b:c/>"), std::string("<a x></a>"),
        std::string("<a/>trailing"), std::string("<!--"), deep}) {
    CAPTURE(text);
    CHECK_FALSE(parse_xml(text));
  }
}
