#!/bin/bash
# Runs a real object store on this host, for tests: Ceph with one monitor, one storage daemon that keeps its objects in
# memory, and the RADOS gateway, which speaks S3. Works for root and for other users.
#   ceph.sh start FOLDER KEY_ID SECRET   prints the gateway's URL; the keys belong to the user `owner`
#   ceph.sh stop FOLDER                  stops the daemons
# radosgw-admin acts on the store with CEPH_CONF=FOLDER/ceph.conf.
set -euo pipefail
export PATH=$PATH:/usr/sbin
folder=$(readlink -m "$2")
export CEPH_CONF=$folder/ceph.conf

# Prints one of several consecutive ports on which nobody listens.
free_port() {
  local port
  for _ in {1..50}; do
    port=$((20000 + RANDOM % 10000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
  return 1
}

# Calls "$@" until it succeeds, for up to 60 s.
wait_for() {
  local end=$((SECONDS + 60))
  while [ "$SECONDS" -lt "$end" ]; do
    "$@" >/dev/null 2>&1 && return
    sleep 0.2
  done
  return 1
}
admin() { ceph --connect-timeout 5 "$@"; }
has_storage() { admin osd stat | grep -q '1 up'; }
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1"); }

start() {
  local cluster monitor gateway storage
  if [ -e "$CEPH_CONF" ]; then
    echo "ceph.sh: a store has been started in this folder before: $folder" >&2
    exit 2
  fi
  cluster=$(cat /proc/sys/kernel/random/uuid)
  storage=$(cat /proc/sys/kernel/random/uuid)
  monitor=$(free_port)
  gateway=$(free_port)
  mkdir -p "$folder"/{mon,osd,rgw,run,log}
  # One copy of everything, in few placement groups: there is only one daemon for them.
  cat >"$CEPH_CONF" <<END
[global]
fsid = $cluster
mon host = v2:127.0.0.1:$monitor
mon initial members = a
public network = 127.0.0.0/8
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = $folder/keyring
run dir = $folder/run
admin socket = $folder/run/\$name.asok
log file = $folder/log/\$name.log
pid file = $folder/run/\$name.pid
mon data = $folder/mon
mon data avail crit = 0
mon data avail warn = 0
osd data = $folder/osd
osd objectstore = memstore
memstore device bytes = 4294967296
osd numa auto affinity = false
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 1000
auth allow insecure global id reclaim = false
rgw data = $folder/rgw
rgw frontends = beast endpoint=127.0.0.1:$gateway
rgw bucket quota ttl = 0
rgw user quota bucket sync interval = 1
END
  local make="ceph-authtool $folder/keyring --gen-key"
  {
    $make --create-keyring -n mon. --cap mon 'allow *'
    $make -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
    $make -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *'
    $make -n client.rgw.a --cap mon 'allow rw' --cap osd 'allow rwx'
    monmaptool --create --fsid "$cluster" --addv a "[v2:127.0.0.1:$monitor]" "$folder/monmap"
    ceph-mon -i a --mkfs --monmap "$folder/monmap" --keyring "$folder/keyring"
    ceph-mon -i a
    wait_for admin osd new "$storage"
    ceph-osd -i 0 --mkfs --osd-uuid "$storage"
    ceph-osd -i 0
    wait_for has_storage
    radosgw -n client.rgw.a
    wait_for answers "$gateway"
    radosgw-admin user create --uid owner --display-name owner --access-key "$1" --secret-key "$2"
  } >"$folder/log/start.log" 2>&1 || {
    tail -n 20 "$folder"/log/*.log
    exit 1
  }
  echo "http://127.0.0.1:$gateway"
}

stop() {
  local file
  for file in "$folder"/run/*.pid; do
    [ ! -e "$file" ] || kill -9 "$(cat "$file")" 2>/dev/null || true
  done
}

case $1 in
  start) start "$3" "$4" ;;
  stop) stop ;;
  *)
    echo "ceph.sh: no such action: $1" >&2
    exit 2
    ;;
esac
