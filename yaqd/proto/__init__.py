"""Wire messages: `.proto` files in our own words, generated modules beside them (`scripts/proto.sh`)."""
