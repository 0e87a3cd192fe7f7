#!/bin/bash
# Stands in for a launcher: checks how it is called, writes down what it was given, and runs the
# command unsandboxed. What it does besides comes from variables that the tests add:
#   FAKE_RECORD  directory for state, argv (NUL after each), environment, help
#                (the command finds the state in FAKE_STATE)
#   FAKE_REPORT  "plain": the help does not list --report-fd; "refuse", "garbage", "nothing", "long":
#                what is reported; else an ordinary report
#   FAKE_EXIT    the exit code of a refusal

reported='{"version":1,"status":"enforced","rung":"full","big":12345678901234567890.10}'
refused='{"version":1,"status":"refused","reason":{"kind":"unsupported","message":"no user namespaces","hint":"run `plenipo doctor`"}}'

[ "$1" = sandbox ] || { echo "launcher: expected sandbox, found $*" >&2; exit 2; }
shift

if [ "$1" = --help ]; then
    [ -n "$FAKE_RECORD" ] && echo asked >>"$FAKE_RECORD/help"
    echo 'Usage: launcher sandbox [OPTIONS] -- COMMAND...'
    echo '      --sandbox-state-json <STATE>'
    [ "$FAKE_REPORT" = plain ] || echo '      --report-fd <FD>'
    exit 0
fi

while [ "$1" != -- ]; do
    case $1 in
    --sandbox-state-json) state=$2 ;;
    --report-fd) descriptor=$2 ;;
    *) echo "launcher: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
shift

export FAKE_STATE=$state
if [ -n "$FAKE_RECORD" ]; then
    printf %s "$state" >"$FAKE_RECORD/state"
    printf '%s\0' "$@" >"$FAKE_RECORD/argv"
    tr '\0' '\n' </proc/$$/environ >"$FAKE_RECORD/environment"
fi

if [ -n "$descriptor" ]; then
    case $FAKE_REPORT in
    refuse) echo "$refused" >&"$descriptor"; echo 'sandbox: no user namespaces' >&2; exit "${FAKE_EXIT:-125}" ;;
    garbage) echo 'not json' >&"$descriptor" ;;
    long) head -c 1500000 /dev/zero >&"$descriptor" ;;
    nothing) ;;
    *) echo "$reported" >&"$descriptor" ;;
    esac
    exec {descriptor}>&-
fi
exec "$@"
