# Makes out/b.gguf as soon as its temporary file is there.
ggufmill run job.yaml --isa reference --quiet &
for i in $(seq 600); do
  ls out/.b.gguf.ggufmill-* > /dev/null 2>&1 && break
  sleep 0.02
done
echo 'somebody else' > out/b.gguf
wait $!
code=$?
ls -A out
exit $code
