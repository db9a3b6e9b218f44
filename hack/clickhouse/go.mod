module github.com/weir-dev/weir/hack/clickhouse

go 1.26.0
