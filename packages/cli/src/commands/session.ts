import type { Command } from 'commander'
import { unwrap, expectNoBody } from '../api/unwrap.ts'
import { anonymous, authorised } from '../api/client.ts'
import { connect } from '../connect.ts'
import { CliError, messageOf } from '../exit.ts'
import { ask, canAsk } from '../print/ask.ts'
import { type Shown, showOne } from '../print/show.ts'
import { cellOf } from '../print/table.ts'
import { say, writeJson } from '../print/write.ts'
import { credentials, defaultServer, serverOf, tokensOf } from '../session/credentials.ts'
import { withLock } from '../session/lock.ts'
import { ownPassword } from '../session/password.ts'
import { readSession, removeSession, writeSession } from '../session/store.ts'
import { addCommand } from './add-command.ts'

interface LoginOptions extends Shown {
  server?: string
  username?: string
  passwordStdin?: true
}

export function addSessionCommands(program: Command): void {
  addCommand(program, 'login', 'sign in and store the session', [
    'plat login --server https://platform.example.com --username ada',
    'plat login --username ada --password-stdin < password.txt',
  ])
    .option('--server <url>', `platform address (default: PLAT_SERVER or ${defaultServer})`)
    .option('--username <name>', 'user name (default: prompt)')
    .option('--password-stdin', 'read the password from standard input (default: PLAT_PASSWORD or prompt)')
    .action(login)
  addCommand(program, 'logout', 'end the session').action(logout)
  addCommand(program, 'whoami', 'show the signed-in user with roles and permissions').action(async (options: Shown) =>
    showOne(options, await unwrap(connect().GET('/api/v1/auth/me'))),
  )
}

async function login({ server: named, username: name, passwordStdin, json }: LoginOptions): Promise<void> {
  const server = serverOf(named ?? (process.env['PLAT_SERVER'] || defaultServer))
  if (isExposed(server)) say(`Warning: passwords and tokens are sent unencrypted to ${server}. Use https.`)
  // Fails before the sign-in if the session cannot be stored.
  await withLock(async () => {})
  const username = name ?? (await askRequired('Username: '))
  const body = { username, password: await ownPassword(passwordStdin) }
  const tokenSet = await unwrap(anonymous(server, { seconds: 8 }).POST('/api/v1/auth/login', { body }))
  const tokens = tokensOf(tokenSet)
  await withLock(async () => writeSession({ server, username, ...tokens }))
  if (tokenSet.notice !== undefined) say(cellOf(tokenSet.notice))
  if (json) return writeJson({ server, username })
  say(`Signed in to ${server} as ${username}.`)
}

const isExposed = (server: string): boolean => {
  const { protocol, hostname } = new URL(server)
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

async function askRequired(question: string): Promise<string> {
  if (!canAsk()) throw new CliError('usage', 'Specify a user name with --username.')
  return (await ask(question)).trim()
}

async function logout({ json }: Shown): Promise<void> {
  if (readSession() === undefined) throw new CliError('notSignedIn', 'Not signed in.')
  const result = await endSession().then(
    () => ({ isEnded: true, reason: '' }),
    (error: unknown) => ({ isEnded: false, reason: messageOf(error) }),
  )
  await withLock(async () => removeSession())
  if (!result.isEnded)
    say(
      `Signed out locally. The platform could not be reached (${result.reason}); the session there ends within 7 days.`,
    )
  await (json ? writeJson({ signedOut: true, platformReached: result.isEnded }) : say('Signed out.'))
}

const endSession = (): Promise<void> =>
  expectNoBody(authorised(credentials({}), { seconds: 2 }).POST('/api/v1/auth/logout'))
