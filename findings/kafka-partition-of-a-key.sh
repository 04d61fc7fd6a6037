#!/bin/bash
# One would guess that clients of Kafka put messages with the same key into the same partition,
# whichever language wrote them: their order, and joins of topics by key, depend on it.
#
# kafka-python and kafkajs hash as Java's client does. librdkafka, which Confluent's clients for
# Python, JavaScript, Go and .NET are made of, takes another hash by default: of 1000 keys and 4
# partitions a quarter is where the others put it, as many as by chance. `partitioner` =
# `murmur2_random` makes it agree on all.
#
# confluent-kafka 2.16.1, kafka-python 3.0.12 (PyPI), kafkajs 2.2.4 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get kafka-python==3.0.12 confluent-kafka==2.16.1
npm_get kafkajs@2.2.4
cat >partition.mjs <<'END'
import kafka from 'kafkajs'
const partition = kafka.Partitioners.DefaultPartitioner()
const partitionMetadata = [...Array(4).keys()].map(partitionId => ({ partitionId, leader: 0 }))
for (let i = 0; i < 1000; i++)
	console.log(partition({ topic: 't', partitionMetadata, message: { key: `key-${i}` } }))
END
cat >partition.py <<'END'
from confluent_kafka import Producer
from kafka.partitioner.default import murmur2

keys = [b"key-%d" % i for i in range(1000)]
# What its DefaultPartitioner does to a key.
with open("kafka-python", "w") as file:
    print(*((murmur2(key) & 0x7fffffff) % 4 for key in keys), sep="\n", file=file)
for name, options in ("librdkafka", {}), ("murmur2", {"partitioner": "murmur2_random"}):
    # librdkafka's own imitation of a broker, with topics of 4 partitions.
    producer = Producer({"test.mock.num.brokers": 1, "topic.metadata.refresh.interval.ms": 100,
                         **options})
    seen = {}
    for key in keys:
        producer.produce("t", b"v", key, on_delivery=lambda error, message:
                         seen.__setitem__(message.key(), message.partition()))
    producer.flush(60)
    with open(name, "w") as file:
        print(*(seen[key] for key in keys), sep="\n", file=file)
END
py/bin/python partition.py 2>log || { cat log && exit 1; }
KAFKAJS_NO_PARTITIONER_WARNING=1 node partition.mjs >kafkajs
agree() { paste -d ' ' "$1" "$2" | awk '$1 == $2 { n++ } END { print n + 0 }'; }
expect "partitions of librdkafka's topic" "0 1 2 3" "$(sort -u librdkafka | paste -sd ' ')"
expect "of 1000 keys kafka-python and kafkajs agree on" 1000 "$(agree kafka-python kafkajs)"
expect "kafka-python and librdkafka agree on" 256 "$(agree kafka-python librdkafka)"
expect "kafka-python and librdkafka's murmur2_random agree on" 1000 "$(agree kafka-python murmur2)"
