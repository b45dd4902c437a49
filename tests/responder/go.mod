module portal.io/tests/responder

go 1.26
