#!/bin/bash
# Runs a real Slurm with a few nodes on this host, for tests: munged, slurmctld and slurmd, without systemd, control
# groups or a database. Works for root and for other users.
#   slurm.sh start FOLDER [NODES] [CPUS]   then: export SLURM_CONF=FOLDER/slurm.conf
#   slurm.sh lose FOLDER NODE              power loss: kills its daemon and all of its jobs
#   slurm.sh lose-daemon FOLDER NODE       kills only the daemon: its jobs continue without supervision
#   slurm.sh return FOLDER NODE            restarts its daemon
#   slurm.sh stop FOLDER
set -euo pipefail
export PATH=$PATH:/usr/sbin
action=$1
folder=$(readlink -m "$2")
export SLURM_CONF=$folder/slurm.conf

# Succeeds if process $1 has ended. Zombies count as ended: the init process of a container may reap them late.
ended() { ! grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }
# Calls "$@" until it succeeds, for up to 20 s.
wait_for() {
  for _ in {1..200}; do
    "$@" && return
    sleep 0.1
  done
  return 1
}
nodes_are_idle() { [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" -eq "$1" ]; }
has_setting() { grep -qzx "$2" "/proc/$1/environ" 2>/dev/null; }
# Prints the step daemons of this Slurm.
step_daemons() {
  local process
  for process in $(pgrep -x slurmstepd); do
    if ! ended "$process" && has_setting "$process" "SLURM_CONF=$SLURM_CONF"; then echo "$process"; fi
  done
}
# Kills a step daemon and the process groups that it has started.
kill_step() {
  local group
  for group in $(ps -o pid= --ppid "$1"); do kill -9 -- "-$group" 2>/dev/null || true; done
  kill -9 "$1" 2>/dev/null || true
}
# Prints the first of several consecutive ports on which nobody listens.
free_ports() {
  local first port
  for _ in {1..50}; do
    first=$((20000 + RANDOM % 10000))
    for port in $(seq "$first" $((first + $1))); do
      if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue 2; fi
    done
    echo "$first"
    return
  done
  return 1
}

start() {
  local nodes=$1 cpus=$2 user port node
  user=$(id -un)
  port=$(free_ports "$nodes")
  mkdir -p "$folder"/{state,log,spool,run}
  chmod 755 "$folder" "$folder/run" # munged wants its socket's folder open to all
  (umask 077 && head -c 64 /dev/urandom >"$folder/munge.key")
  munged --force --key-file="$folder/munge.key" --socket="$folder/run/munge.sock" --pid-file="$folder/run/munged.pid" \
    --log-file="$folder/log/munged.log" --seed-file="$folder/munge.seed" --num-threads=2 2>"$folder/log/munged.err"
  # cred_expire: the delay before a requeued job may start, 120 s by default. config_overrides: nodes may have more CPUs
  # than this host. ReturnToService: a lost node comes back without an administrator's command.
  cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
MessageTimeout=5
KillWait=2
BatchStartTimeout=5
UnkillableStepTimeout=5
CompleteWait=0
MinJobAge=300
JobRequeue=1
PropagateResourceLimits=NONE
END
  for node in $(seq "$nodes"); do
    mkdir -p "$folder/spool/n$node"
    echo "NodeName=n$node NodeAddr=127.0.0.1 Port=$((port + node)) CPUs=$cpus CoresPerSocket=$cpus RealMemory=2000" \
      "Feature=f$node State=UNKNOWN" >>"$SLURM_CONF"
  done
  echo "PartitionName=main Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP" >>"$SLURM_CONF"
  slurmctld -c
  for node in $(seq "$nodes"); do slurmd -N "n$node"; done
  wait_for nodes_are_idle "$nodes" && return
  sinfo -N -l
  tail -n 20 "$folder"/log/*.log
  exit 1
}

lose_daemon() { kill -9 "$(cat "$folder/run/slurmd-$1.pid")" || true; }

lose() {
  local step process
  lose_daemon "$1"
  for step in $(step_daemons); do
    for process in $(ps -o pid= --ppid "$step"); do
      if has_setting "$process" "SLURMD_NODENAME=$1"; then kill_step "$step"; fi
    done
  done
}

stop() {
  local file process
  scancel --full --state=PENDING,RUNNING,SUSPENDED 2>/dev/null || true
  for _ in {1..20}; do
    [ -n "$(step_daemons)" ] || break
    sleep 0.1
  done
  for file in "$folder"/run/slurmd-*.pid "$folder/run/slurmctld.pid" "$folder/run/munged.pid"; do
    [ -e "$file" ] || continue
    process=$(cat "$file")
    kill -9 "$process" 2>/dev/null || true
    wait_for ended "$process" || true
  done
  for process in $(step_daemons); do kill_step "$process"; done
}

case $action in
  start) start "${3:-2}" "${4:-1}" ;;
  lose) lose "$3" ;;
  lose-daemon) lose_daemon "$3" ;;
  return) slurmd -N "$3" ;;
  stop) stop ;;
  *) exit 2 ;;
esac
