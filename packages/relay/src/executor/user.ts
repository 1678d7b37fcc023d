import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { FatalError } from '../exit-codes.ts'

/** The user that scripts on this machine run as. `isOther` is false for the user of the relay. */
export type ScriptUser = { name: string; uid: number; gid: number; home: string; isOther: boolean }

/** The user of the relay itself. */
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

/** The user that `--run-as` names. Throws `FatalError` if scripts cannot run as this user. */
export function findUser(name: string): ScriptUser {
  if (process.getuid?.() !== 0) throw new FatalError('usage', '--run-as needs a relay that runs as root.')
  const [, , uid, gid, , home = '/'] = entryOf(name)?.split(':') ?? []
  if (uid === undefined || gid === undefined) throw new FatalError('usage', `--run-as: there is no user ${name}.`)
  if (uid === '0') throw new FatalError('usage', '--run-as must name a user other than root.')
  return { name, uid: Number(uid), gid: Number(gid), home, isOther: true }
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
