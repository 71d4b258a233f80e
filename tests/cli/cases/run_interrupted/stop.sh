# usage: stop.sh SIGNAL ENGINE: sends SIGNAL when the first temporary file is there.
ggufmill run job.yaml --engine $2 --isa reference --quiet &
for i in $(seq 600); do
  ls out/.*.ggufmill-* > /dev/null 2>&1 && break
  sleep 0.05
done
kill -$1 $!
wait $!
