from common import *

OUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SHAPES = {
    "error_no_structured": {"isError": True, "content": [{"type": "text", "text": "quota used up (Q-9)"}]},
    "error_wrong_structured": {"isError": True, "content": [{"type": "text", "text": "bad id (B-3)"}], "structuredContent": {"error": "B-3"}},
    "structured_only": {"structuredContent": {"n": 5}},
    "structured_null": {"content": [{"type": "text", "text": "n=5"}], "structuredContent": None},
    "violates_schema": {"content": [{"type": "text", "text": "n=five"}], "structuredContent": {"n": "five"}},
    "unknown_block": {"content": [{"type": "json", "json": {"a": 1}}, {"type": "text", "text": "after"}]},
    "empty": {"content": []}, "no_content": {},
    "image": {"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}, {"type": "resource_link", "uri": "file:///x", "name": "x"},
                          {"type": "resource", "resource": {"uri": "mem://1", "blob": "AAEC"}}], "_meta": {"vendor/x": 1}},
}
for m in messages():
    method, i = m.get("method"), m.get("id")
    if i is None or method is None:
        continue
    if method == "initialize":
        ok(i, init_result(m))
    elif method == "tools/list":
        ok(i, {"tools": [{**tool(n), **({"outputSchema": OUT} if "struct" in n or "schema" in n else {})} for n in SHAPES]})
    elif method == "tools/call":
        ok(i, SHAPES[m["params"]["name"]])
    else:
        fail(i, -32601, "method not found")
