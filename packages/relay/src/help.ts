import { relayVersion } from './version.ts'

export const versionText = `platform-relay ${relayVersion}`

export const helpText = `${versionText}: runs the scripts of a cluster on its nodes.

  PLAT_ENROLLMENT_TOKEN=<token> node relay.mjs --server <url>

Options
  --server <url>      the platform; or PLAT_RELAY_SERVER; remembered after the first start
  --state-dir <dir>   where the relay keeps its key and journal; default ./platform-relay/<id of the token>
  --name <name>       how the portal shows this relay; default the name of this machine
  --slots <number>    how many jobs run at once, 1 to 100; default 4
  --nodes <file>      the nodes that scripts run on; default this machine alone
  --version, --help

The enrollment token is needed once. Started again with the same token or --state-dir, the relay goes on.

The nodes file lists every node:
  {"nodes": [
    {"name": "gateway", "executor": "local"},
    {"name": "worker-1", "executor": "ssh", "host": "10.0.0.7", "user": "ops", "port": 22,
     "identityFile": "/home/ops/.ssh/id_ed25519", "knownHostsFile": "/home/ops/.ssh/known_hosts"}
  ]}
ssh nodes need a POSIX shell, a host key that ssh already knows, and a key that needs no passphrase.

Exit codes
  0  stopped by SIGTERM or SIGINT
  1  an unexpected error
  2  a wrong option or nodes file
  3  the server refused the enrollment token: issue a new one
  4  the server revoked this relay: issue a new token to enroll again
  5  the state folder is in use by another relay, or damaged
`
