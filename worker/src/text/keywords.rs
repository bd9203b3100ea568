//! Words that keep their name in the preprocess mode `advanced`.

/// The words Matheel 0.7.1 treats as keywords in any language, in lower case and code point order.
#[rustfmt::skip]
const KEYWORDS: [&str; 217] = [
    "__halt_compiler", "abstract", "and", "any", "as", "asserts", "async", "auto", "await",
    "base", "begin", "bigint", "bool", "boolean", "break", "case", "catch", "chan", "char",
    "class", "clone", "const", "constructor", "continue", "contract", "crate", "crossinline",
    "data", "debugger", "declare", "def", "default", "defer", "deferred", "deinit", "delegate",
    "delete", "do", "double", "dynamic", "echo", "elif", "else", "elseif", "elsif", "end",
    "ensure", "enum", "event", "except", "export", "extends", "extension", "extern", "external",
    "factory", "fallthrough", "false", "field", "file", "final", "finally", "float", "fn", "for",
    "foreach", "forsome", "from", "fun", "func", "function", "get", "global", "go", "goto",
    "guard", "hide", "if", "immutable", "impl", "implicit", "import", "in", "include",
    "include_once", "indexed", "indirect", "infer", "infix", "init", "inout", "instanceof", "int",
    "interface", "internal", "is", "isset", "keyof", "lambda", "late", "lateinit", "lazy", "let",
    "library", "lock", "long", "loop", "macro_rules", "map", "match", "memory", "mixin", "mod",
    "modifier", "module", "mut", "nameof", "namespace", "never", "new", "next", "nil", "noinline",
    "none", "not", "null", "number", "object", "on", "open", "operator", "or", "out", "override",
    "package", "part", "pass", "payable", "pragma", "precedencegroup", "private", "protected",
    "pub", "public", "raise", "range", "readonly", "redo", "ref", "reified", "repeat", "require",
    "require_once", "require_relative", "required", "rescue", "rethrow", "rethrows", "retry",
    "return", "returns", "revert", "satisfies", "sealed", "select", "self", "set", "short",
    "show", "signed", "some", "static", "storage", "string", "struct", "subscript", "super",
    "suspend", "switch", "symbol", "sync", "tailrec", "template", "then", "this", "throw",
    "throws", "trait", "true", "try", "type", "typealias", "typedef", "typename", "uint",
    "uint256", "undefined", "unique", "unknown", "unless", "unsafe", "until", "use", "using",
    "val", "var", "view", "virtual", "void", "volatile", "weak", "when", "where", "while",
    "willset", "with", "yield",
];

/// True when the word in lower case is a keyword.
pub(super) fn is_keyword(lowered: &str) -> bool {
    KEYWORDS.binary_search(&lowered).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("willset") && is_keyword("__halt_compiler") && !is_keyword("total"));
    }
}
