#!/bin/sh
# The same settings file and variables as Apache's image: formats the storage once, then becomes the broker.
set -eu
settings=/mnt/shared/config/server.properties
run="java -Dlog4j2.configurationFile=/opt/kafka/kafka-log4j2.properties -XX:+UseSerialGC"
export CLASSPATH='/opt/kafka/libs/*'
# shellcheck disable=SC2086 # several words each
[ -e /var/lib/kafka/data/meta.properties ] ||
    $run -Xmx64m kafka.tools.StorageTool format -t "$CLUSTER_ID" -c "$settings" --ignore-formatted
exec $run ${KAFKA_HEAP_OPTS:-} kafka.Kafka "$settings"
