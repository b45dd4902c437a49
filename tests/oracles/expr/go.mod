module portal.io/tests/oracles/expr

go 1.26

require github.com/expr-lang/expr v1.17.8
