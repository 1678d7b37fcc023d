import type { Command } from 'commander'
import { expectNoBody, isApiRejection, unwrap } from '../api/unwrap.ts'
import { anonymousClient, type Api, authorisedClient } from '../api/client.ts'
import { connect } from '../connect.ts'
import { defaultContext, environmentServer, requestedContextName } from '../context.ts'
import { CliError, exitCodes, messageOf } from '../exit.ts'
import { ask, canAsk } from '../print/ask.ts'
import { type PrintOptions, showOne } from '../print/show.ts'
import { cellOf } from '../print/table.ts'
import { say, writeJson } from '../print/write.ts'
import { contextCredentials, defaultServer, existingContext, serverOf, tokensOf } from '../session/credentials.ts'
import { withLock } from '../session/lock.ts'
import { ownPassword } from '../session/password.ts'
import {
  contextNames,
  currentContextName,
  readContext,
  selectedContextName,
  type Session,
  setCurrentContextName,
  writeContext,
} from '../session/store.ts'
import { addCommand } from './add-command.ts'

interface LoginOptions extends PrintOptions {
  server?: string
  username?: string
  passwordStdin?: true
}

export function addSessionCommands(program: Command): void {
  addCommand(program, 'login', 'sign in to a context and store its session', {
    login: [
      'plat login --server https://platform.example.com --username ada',
      'plat login --username ada --password-stdin < password.txt',
    ],
  })
    .option('--server <url>', `platform address (default: PLAT_SERVER, that of the context, or ${defaultServer})`)
    .option('--username <name>', 'user name (default: prompt)')
    .option('--password-stdin', 'read the password from standard input (default: PLAT_PASSWORD or prompt)')
    .action(login)
  addCommand(program, 'logout', 'end the session of the context', { logout: 'plat logout' }).action(logout)
  addCommand(program, 'whoami', 'show the signed-in user with roles and permissions', { me: 'plat whoami' }).action(
    async (options: PrintOptions) => showOne(options, await unwrap(connect().GET('/api/v1/auth/me'))),
  )
}

async function login({ server: givenServer, username: givenUser, passwordStdin, json }: LoginOptions): Promise<void> {
  const { name, server } = loginTarget(givenServer)
  if (isExposed(server)) say(`Warning: passwords and tokens are sent unencrypted to ${server}. Use https.`)
  // This fails before the sign-in if the session cannot be stored.
  await withLock(name, async () => {})
  const username = givenUser ?? (await askRequired('Username: '))
  const body = { username, password: await ownPassword(passwordStdin) }
  const api = anonymousClient(server, { retrySeconds: 8 })
  const tokenSet = await unwrap(api.POST('/api/v1/auth/login', { body })).catch(async (error: unknown) => {
    if (isApiRejection(error, 'invalid_credentials') && (await isNotSetUp(api)))
      throw new CliError('refused', `The platform is not set up yet. Open ${server} in a browser.`)
    throw error
  })
  const tokens = tokensOf(tokenSet)
  await withLock(name, async () => writeContext(name, { server, session: { server, username, ...tokens } }))
  if (requestedContextName() === undefined || readContext(currentContextName()) === undefined)
    setCurrentContextName(name)
  if (tokenSet.notice !== undefined) say(cellOf(tokenSet.notice))
  if (json) return writeJson({ server, username, context: name })
  say(`Signed in to ${server} as ${username}.${name === defaultContext ? '' : ` Context: ${name}.`}`)
}

// After the setup, the platform rejects the request for the setup status.
const isNotSetUp = async (api: Api): Promise<boolean> =>
  unwrap(api.GET('/api/v1/setup/status')).then(
    ({ setupComplete }) => !setupComplete,
    () => false,
  )

/**
 * Chooses the context of a sign-in. Another server gets its own context, so that the session of the current context is
 * kept. Throws `CliError` if the requested context belongs to another server.
 */
function loginTarget(givenServer: string | undefined): { name: string; server: string } {
  const name = selectedContextName()
  const context = readContext(name)
  const server = serverOf(givenServer ?? environmentServer() ?? context?.server ?? defaultServer)
  if (context === undefined || context.server === server) return { name, server }
  if (requestedContextName() !== undefined) {
    const nextStep = `Add another one: plat context add NAME --server ${server}`
    throw new CliError('usage', `The context ${name} belongs to ${context.server}. ${nextStep}`)
  }
  const host = new URL(server).host
    .replaceAll(/[^\w.-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 50)
  const names = contextNames()
  const knownName = names.find((each) => readContext(each)?.server === server)
  const numberedName = (index: number): string => (index === 0 ? host : `${host}-${index + 1}`)
  const freeName = Array.from({ length: names.length + 1 }, (_, index) => numberedName(index)).find(
    (each) => !names.includes(each),
  )
  return { name: knownName ?? freeName ?? host, server }
}

const isExposed = (server: string): boolean => {
  const { protocol, hostname } = new URL(server)
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

async function askRequired(question: string): Promise<string> {
  if (!canAsk()) throw new CliError('usage', 'Specify a user name with --username.')
  return (await ask(question)).trim()
}

async function logout({ json }: PrintOptions): Promise<void> {
  const name = selectedContextName()
  const { server, username, session } = existingContext(name)
  if (session === undefined) throw new CliError('notSignedIn', `Not signed in to ${server}.`)
  const isEnded = await endSession(name, session)
  await withLock(name, async () => writeContext(name, { server, ...(username && { username }) }))
  await (json ? writeJson({ signedOut: true, platformReached: isEnded }) : say('Signed out.'))
}

/** Ends a session on the platform. If that fails, prints a note and returns false. */
export async function endSession(name: string, session: Session): Promise<boolean> {
  try {
    await expectNoBody(
      authorisedClient(contextCredentials(name, session), { retrySeconds: 2 }).POST('/api/v1/auth/logout'),
    )
    return true
  } catch (error) {
    if (error instanceof CliError && error.exitCode === exitCodes.notSignedIn) return true
    say(`Signed out locally. The session on the platform ends within 7 days: ${messageOf(error)}`)
    return false
  }
}
