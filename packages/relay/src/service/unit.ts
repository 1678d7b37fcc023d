import { join } from 'node:path'

export const serviceName = 'platform-relay'
/** System user that the relay service runs as. */
export const relayUserName = 'platform-relay'
/** The default user of scripts. */
export const scriptUserName = 'platform-scripts'

/** Returns the paths of the service. `root` is `/`, or the folder of an image. */
export const pathsIn = (root: string) => ({
  programFolder: join(root, '/usr/local/lib/platform-relay'),
  program: join(root, '/usr/local/lib/platform-relay/relay.mjs'),
  unit: join(root, `/etc/systemd/system/${serviceName}.service`),
  settingsFolder: join(root, '/etc/platform-relay'),
  environment: join(root, '/etc/platform-relay/environment'),
  state: join(root, '/var/lib/platform-relay'),
  work: join(root, '/var/lib/platform-relay-scripts'),
})

const paths = pathsIn('/')

export type UnitSettings = {
  node: string
  runAs: string
  slots: number
  name: string
  nodesFile: string | undefined
  factsFolder: string | undefined
  /** Whether scripts may gain rights with sudo. */
  allowSudo: boolean
}

// With these capabilities, the relay starts and ends processes of another user.
const capabilities = 'CAP_CHOWN CAP_KILL CAP_SETGID CAP_SETUID'

// These settings also apply to scripts, except for the capabilities, which scripts do not have.
const sandbox = [
  `CapabilityBoundingSet=${capabilities}`,
  'NoNewPrivileges=yes',
  'ProtectSystem=full',
  'ProtectHome=yes',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'LockPersonality=yes',
  'RestrictNamespaces=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'SystemCallArchitectures=native',
  'SystemCallFilter=~@clock @cpu-emulation @debug @module @mount @obsolete @raw-io @reboot @swap',
  'SystemCallErrorNumber=EPERM',
]

/** Returns the unit file of the service. */
export function unitText({ node, runAs, slots, name, nodesFile, factsFolder, allowSudo }: UnitSettings): string {
  const command = [node, paths.program, '--state-dir', paths.state, '--work-dir', paths.work, '--run-as', runAs]
  const options = ['--slots', String(slots), '--name', name]
  if (nodesFile) options.push('--nodes', nodesFile)
  if (factsFolder) options.push('--facts-dir', factsFolder)
  return [
    '# Written by the command `install` of the relay. To change it, use `systemctl edit platform-relay`.',
    '[Unit]',
    'Description=Relay of the platform',
    'Wants=network-online.target',
    'After=network-online.target',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    `User=${relayUserName}`,
    `Group=${relayUserName}`,
    `EnvironmentFile=${paths.environment}`,
    `ExecStart=${[...command, ...options].map(quoteWord).join(' ')}`,
    'Restart=on-failure',
    'RestartSec=5',
    '# Do not restart after an invalid option, a rejected token, a revocation or a problem of the state folder.',
    'RestartPreventExitStatus=2 3 4 6',
    '# Signal only the relay; it stops its scripts and reports them as interrupted.',
    'KillMode=mixed',
    'TimeoutStopSec=15',
    'UMask=0077',
    'LimitCORE=0',
    '# Scripts run as another user, without these capabilities.',
    `AmbientCapabilities=${capabilities}`,
    ...(allowSudo ? [] : sandbox),
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n')
}

// Escapes `%` and `$`, which have a special meaning in a unit, and quotes the word if necessary.
function quoteWord(word: string): string {
  const escapedWord = word.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w./:@%+,-]+$/.test(word) ? escapedWord : `"${escapedWord.replaceAll(/["\\]/g, String.raw`\$&`)}"`
}

/** Returns the text of an environment file. Throws `RangeError` if a value contains a line break or NUL. */
export function environmentText(variables: Record<string, string>): string {
  return Object.entries(variables)
    .map(([name, value]) => {
      if (/[\0\r\n]/.test(value)) throw new RangeError(`${name} has more than one line.`)
      return `${name}="${value.replaceAll(/["\\$`]/g, String.raw`\$&`)}"\n`
    })
    .join('')
}
