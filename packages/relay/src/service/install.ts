import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { FatalError } from '../exit-codes.ts'
import { readIfPresent } from '../files.ts'
import { loadIdentity } from '../identity.ts'
import { messageOf } from '../log.ts'
import type { Options } from '../options.ts'
import { environmentText, pathsIn, relayUserName, scriptUserName, serviceName, unitText } from './unit.ts'

const inheritedNames = [
  'HTTPS_PROXY',
  'https_proxy',
  'HTTP_PROXY',
  'http_proxy',
  'NO_PROXY',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
]

type Settings = Pick<
  Options,
  'server' | 'token' | 'runAsName' | 'slots' | 'displayName' | 'nodesFile' | 'factsFolder' | 'root' | 'allowSudo'
>

/** Installs the relay as a systemd service, or updates its files. A repeated call completes an interrupted one. */
export function install(settings: Settings, environment: NodeJS.ProcessEnv = process.env): void {
  const { root } = settings
  const paths = pathsIn(root)
  requireRoot('install')
  const variables = variablesOf(settings, environment)
  const runAs = settings.runAsName ?? scriptUserName
  ensureUser(root, relayUserName, paths.state)
  if (runAs === scriptUserName) ensureUser(root, scriptUserName, paths.work)
  const { uid, gid } = requireUserIn(root, relayUserName)
  if (requireUserIn(root, runAs).uid === uid || requireUserIn(root, runAs).uid === 0)
    throw new FatalError('usage', '--run-as must name a user other than root and the user of the relay.')
  ensureFolder(paths.state, 0o700, uid, gid)
  // Scripts can enter their own folders below this one, but cannot list it.
  ensureFolder(paths.work, 0o711, uid, gid)
  ensureFolder(paths.programFolder, 0o755, 0, 0)
  ensureFolder(paths.settingsFolder, 0o700, 0, 0)
  const node = realpathSync(process.execPath)
  const problem = root === '/' ? nodeProblem(node, settings.allowSudo) : undefined
  if (problem !== undefined) throw new FatalError('usage', problem)
  const unit = unitText({ ...settings, node, runAs, name: settings.displayName })
  // The marker remains if this run ends before systemd has loaded the files.
  const marker = join(paths.settingsFolder, 'install-incomplete')
  const wasInterrupted = existsSync(marker)
  writeFileSync(marker, '')
  const changeFlags = [
    wasInterrupted,
    replaceFile(paths.program, readFileSync(process.argv[1]!), 0o755),
    replaceFile(paths.environment, environmentText(variables), 0o600),
    replaceFile(paths.unit, unit, 0o644),
  ]
  const isChanged = changeFlags.includes(true)
  systemctl(root, 'enable', '--quiet', serviceName)
  if (isSystemdRunning(root)) {
    if (isChanged) systemctl(root, 'daemon-reload')
    systemctl(root, isChanged ? 'restart' : 'start', serviceName)
  }
  rmSync(marker)
  print(
    isChanged ? 'The service is installed.' : 'The service was already installed.',
    isSystemdRunning(root)
      ? `Next: journalctl -u ${serviceName} -f`
      : 'systemd is not running here. The service starts at the next boot.',
  )
}

/** Removes the service. The settings, the state and the users remain, unless `purge` is true. */
export function uninstall({ root, purge }: Pick<Options, 'root' | 'purge'>): void {
  const paths = pathsIn(root)
  requireRoot('uninstall')
  if (existsSync(paths.unit)) {
    systemctl(root, 'disable', '--quiet', serviceName)
    if (isSystemdRunning(root)) systemctl(root, 'stop', serviceName)
  }
  for (const path of [paths.unit, paths.programFolder]) rmSync(path, { recursive: true, force: true })
  if (isSystemdRunning(root)) systemctl(root, 'daemon-reload')
  if (!purge) return print('The service is removed.', `Its state remains in ${paths.state}; --purge removes it too.`)
  for (const path of [paths.settingsFolder, paths.state, paths.work]) rmSync(path, { recursive: true, force: true })
  for (const name of [relayUserName, scriptUserName]) {
    if (findUserIn(root, name)) run('userdel', [...prefixOf(root), name])
  }
  print(
    'The service, its state and its users are removed.',
    'To end its identity, remove the cluster or enroll a new relay.',
  )
}

function requireRoot(command: string): void {
  if (process.getuid?.() !== 0) throw new FatalError('usage', `${command} needs root. Use sudo --preserve-env.`)
  if (process.platform !== 'linux') throw new FatalError('usage', `${command} needs Linux with systemd.`)
}

const credentialNames = ['PLAT_ENROLLMENT_KEY', 'PLAT_ENROLLMENT_TOKEN'] as const

// Variables that are not set again keep their stored values.
function variablesOf({ server, token, root }: Settings, environment: NodeJS.ProcessEnv): Record<string, string> {
  const paths = pathsIn(root)
  const variables: Record<string, string> = { ...storedVariables(paths.environment) }
  for (const name of inheritedNames) if (environment[name]) variables[name] = environment[name]
  if (server) variables['PLAT_RELAY_SERVER'] = server
  if (token) {
    for (const name of credentialNames) delete variables[name]
    variables[credentialNames[token.isKey ? 0 : 1]] = token.text
  }
  const isEnrolled = existsSync(paths.state) && loadIdentity(paths.state) !== undefined
  if (!isEnrolled && !(variables['PLAT_RELAY_SERVER'] && credentialNames.some((name) => variables[name])))
    throw new FatalError(
      'usage',
      'Set --server, and PLAT_ENROLLMENT_TOKEN or --enrollment-key: the service enrolls with them at its first start.',
    )
  return variables
}

function storedVariables(path: string): Record<string, string> {
  const lines = (readIfPresent(path) ?? '').split('\n').map((line) => /^(\w+)="(.*)"$/.exec(line))
  return Object.fromEntries(
    lines.flatMap((match) => (match ? [[match[1]!, match[2]!.replaceAll(/\\(.)/g, '$1')]] : [])),
  )
}

const advice = 'Install Node for all users, for example with the packages of the system, and use it for this command.'

/** Returns the reason why the service must not run Node.js at `path`, if any. `path` has no symbolic links. */
export function nodeProblem(path: string, allowSudo: boolean): string | undefined {
  if (!allowSudo && /^\/(?:home|root|run\/user)\//.test(path))
    return `The service cannot run ${path}, because its sandbox hides home folders. ${advice}`
  for (let ancestor = path; ; ancestor = dirname(ancestor)) {
    const { mode, uid } = statSync(ancestor)
    if ((mode & 0o001) === 0)
      return `The service cannot run ${path}, because not all users can enter ${ancestor}. ${advice}`
    // In a folder with the sticky bit, such as /tmp, other users cannot replace the files of root.
    if (uid !== 0 || (mode & 0o022 && !(mode & 0o1000)))
      return `The service must not run ${path}, because users other than root can change ${ancestor}. ${advice}`
    if (ancestor === '/') return undefined
  }
}

type User = { uid: number; gid: number }

function findUserIn(root: string, name: string): User | undefined {
  const path = `${root}/etc/passwd`
  const entry = (readIfPresent(path) ?? '').split('\n').find((line) => line.startsWith(`${name}:`))
  const [, , uid, gid] = entry?.split(':') ?? []
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}

function requireUserIn(root: string, name: string): User {
  const user = findUserIn(root, name)
  if (user === undefined)
    throw new FatalError('usage', `There is no local user ${name}. Create it first: useradd --system ${name}`)
  return user
}

function ensureUser(root: string, name: string, home: string): void {
  if (findUserIn(root, name)) return
  const folder = home.slice(root === '/' ? 0 : root.length)
  run('useradd', [
    ...prefixOf(root),
    '--system',
    '--user-group',
    '--no-create-home',
    '--home-dir',
    folder,
    '--shell',
    '/usr/sbin/nologin',
    name,
  ])
}

const prefixOf = (root: string): string[] => (root === '/' ? [] : ['--prefix', root])

function ensureFolder(path: string, mode: number, uid: number, gid: number): void {
  mkdirSync(path, { recursive: true })
  chmodSync(path, mode)
  chownSync(path, uid, gid)
}

// Writes a file unless it has this content, and returns whether it wrote.
function replaceFile(path: string, content: string | Buffer, mode: number): boolean {
  const isSame = existsSync(path) && Buffer.from(content).equals(readFileSync(path))
  if (isSame) chmodSync(path, mode)
  else {
    mkdirSync(dirname(path), { recursive: true })
    rmSync(`${path}.draft`, { force: true })
    writeFileSync(`${path}.draft`, content, { mode, flag: 'wx' })
    chmodSync(`${path}.draft`, mode)
    renameSync(`${path}.draft`, path)
  }
  return !isSame
}

const isSystemdRunning = (root: string): boolean => root === '/' && existsSync('/run/systemd/system')

function systemctl(root: string, ...args: string[]): void {
  run('systemctl', root === '/' ? args : ['--root', root, ...args])
}

function run(program: string, args: string[]): void {
  try {
    execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  } catch (error) {
    throw new FatalError(
      'failed',
      `${program} failed: ${messageOf(error).trim()}. Correct the cause and run the command again.`,
    )
  }
}

function print(...lines: string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(''))
}
