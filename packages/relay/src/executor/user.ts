import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { FatalError } from '../exit-codes.ts'
import { readIfPresent } from '../files.ts'

/** The user that scripts on this machine run as. `isOther` is false for the user of the relay. */
export type ScriptUser = { name: string; uid: number; gid: number; home: string; isOther: boolean }

/** Returns the user of the relay itself. */
export function relayUser(): ScriptUser {
  const uid = process.getuid?.() ?? 0
  const gid = process.getgid?.() ?? 0
  try {
    const { username: name, homedir: home } = userInfo()
    return { name, uid, gid, home, isOther: false }
  } catch {
    // The user has no entry in the user database, as in some containers.
    return { name: String(uid), uid, gid, home: '/', isOther: false }
  }
}

/** Finds the user that `--run-as` names. Throws `FatalError` if scripts cannot run as this user. */
export function findUser(name: string): ScriptUser {
  if (process.getuid?.() !== 0 && !hasCapabilities())
    throw new FatalError('usage', '--run-as needs a relay that runs as root, or a service that `install` creates.')
  const [, , uid, gid, , home = '/'] = entryOf(name)?.split(':') ?? []
  if (uid === undefined || gid === undefined) throw new FatalError('usage', `--run-as: there is no user ${name}.`)
  if (uid === '0') throw new FatalError('usage', '--run-as must name a user other than root.')
  return { name, uid: Number(uid), gid: Number(gid), home, isOther: true }
}

// CAP_CHOWN, CAP_KILL, CAP_SETGID and CAP_SETUID.
const neededCapabilities = 0b1110_0001n

function hasCapabilities(): boolean {
  const [, effectiveCapabilities] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readIfPresent('/proc/self/status') ?? '') ?? []
  return (
    effectiveCapabilities !== undefined &&
    (BigInt(`0x${effectiveCapabilities}`) & neededCapabilities) === neededCapabilities
  )
}

type StartCommand = { program: string; args: string[]; options: { cwd: string; uid?: number; gid?: number } }

/** Returns the command and the options of `spawn` that start a program as a user in a folder. */
export function startAs(
  { uid, gid }: Pick<ScriptUser, 'uid' | 'gid'>,
  cwd: string,
  [program = '', ...args]: string[],
): StartCommand {
  const ownId = process.getuid?.()
  if (ownId === uid || ownId === undefined) return { program, args, options: { cwd } }
  if (ownId === 0) return { program, args, options: { cwd, uid, gid } }
  // A change of the user alone would keep the capabilities of the relay.
  const restrictions = ['--clear-groups', '--inh-caps=-all', '--ambient-caps=-all', '--', 'env', `--chdir=${cwd}`]
  return {
    program: 'setpriv',
    args: [`--reuid=${uid}`, `--regid=${gid}`, ...restrictions, program, ...args],
    // Only the user can enter `cwd`, so `env`, which runs as the user, changes to this folder.
    options: { cwd: '/' },
  }
}

function entryOf(name: string): string | undefined {
  const entries = userDatabase(name).split('\n')
  return entries.find((entry) => entry.startsWith(`${name}:`))
}

// `getent` also finds users of a directory service.
function userDatabase(name: string): string {
  try {
    return execFileSync('getent', ['passwd', name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return readFileSync('/etc/passwd', 'utf8')
  }
}
