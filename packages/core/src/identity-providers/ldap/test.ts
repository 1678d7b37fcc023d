import { upgradeToTls, connectDirectory } from './socket.ts'
import { MalformedResponse } from './ber.ts'
import type { ProviderRecord, ProviderSecret } from '../record.ts'
import { hasMatchingRule } from './groups.ts'
import { bindService, clientOn } from './ldap.ts'
import { LdapMessages } from './wire.ts'
import { toOutboundError, OutboundError, type OutboundErrorKind } from '../../outbound/outbound.ts'
import type { ProviderProblem } from '@platform/contract/identity'
import { type Client, InvalidCredentialsError, ResultCodeError } from 'ldapts'

export interface LdapCheck {
  name: string
  ok: boolean
  message: string
}

const timeoutMs = 6000

const errorMessages: Readonly<Record<OutboundErrorKind, string>> = {
  url_not_allowed: 'The platform may not call this address.',
  address_not_allowed: 'The address is private. PLAT_OUTBOUND_ALLOW can name it.',
  name_not_resolved: 'The host name does not resolve.',
  certificate_not_trusted: 'The certificate is not trusted: wrong host, unknown authority, or expired.',
  connection_failed: 'The directory does not respond, or its response is not LDAP.',
  timed_out: 'The directory did not respond in time.',
}

const accountRejected = 'The directory rejects the service account. Check bindDn and bindPassword.'

/** Checks the steps of a sign-in that need no user, up to the first failure. Messages disclose no response content. */
export async function testLdap(
  { settings }: ProviderRecord,
  secret: ProviderSecret,
  signal = AbortSignal.timeout(timeoutMs),
): Promise<LdapCheck[]> {
  const checks: LdapCheck[] = []
  const step = async <Result>(
    name: string,
    successMessage: string,
    failureMessage: string,
    run: () => Promise<Result>,
  ) => {
    try {
      const result = await run()
      checks.push({ name, ok: true, message: successMessage })
      return result
    } catch (error) {
      checks.push({ name, ok: false, message: messageOf(error, signal, failureMessage) })
      throw error
    }
  }
  await using cleanup = new AsyncDisposableStack()
  try {
    const socket = await step('connect', 'The directory is reachable.', '', () => connectDirectory(settings, signal))
    cleanup.defer(() => void socket.destroy())
    const tlsFailure = 'The directory does not accept TLS.'
    const tlsSocket = await step('tls', 'The certificate of the directory is trusted.', tlsFailure, () =>
      upgradeToTls(socket, settings),
    )
    const { client } = cleanup.use(clientOn(new LdapMessages(tlsSocket)))
    await step('bind', 'The service account can sign in.', accountRejected, () => bindService(client, settings, secret))
    const searchFailure = 'The service account cannot read userSearchBase.'
    await step('search', 'The search base of users exists.', searchFailure, () =>
      requireEntry(client, settings.userSearchBase ?? ''),
    )
    const { groupSearchBase, nestedGroups } = settings
    if (groupSearchBase === undefined && nestedGroups !== 'matchingRule') return checks
    const groupsFailure =
      nestedGroups === 'matchingRule'
        ? 'The service account cannot read groupSearchBase, or the directory does not have the matching rule of Active Directory.'
        : 'The service account cannot read groupSearchBase.'
    await step('groups', 'The groups of users can be read.', groupsFailure, async () => {
      if (nestedGroups === 'matchingRule' && !(await hasMatchingRule(client))) throw new MalformedResponse('no rule')
      if (groupSearchBase !== undefined) await requireEntry(client, groupSearchBase)
    })
  } catch {
    // The result contains the failed step.
  }
  return checks
}

/** A directory may hide an entry by a response without entries. */
async function requireEntry(client: Client, dn: string): Promise<void> {
  const { searchEntries } = await client.search(dn, { scope: 'base', attributes: ['1.1'], sizeLimit: 1, timeLimit: 5 })
  if (searchEntries.length === 0) throw new MalformedResponse('no entry')
}

/** Describes the error of a sign-in to administrators, without content of responses. */
export function failureOf(error: unknown, signal: AbortSignal): { problem: ProviderProblem; detail: string } {
  if (!(error instanceof ResultCodeError)) return { problem: 'unreachable', detail: messageOf(error, signal, '') }
  const isRejected = error instanceof InvalidCredentialsError
  const codeMessage = `The directory returned the result code ${error.code} (${error.name}).`
  return { problem: 'answer_invalid', detail: isRejected ? accountRejected : codeMessage }
}

function messageOf(error: unknown, signal: AbortSignal, failureMessage: string): string {
  if (signal.aborted) return errorMessages.timed_out
  const { problem } = error instanceof OutboundError ? error : toOutboundError(error)
  return problem === 'connection_failed' && failureMessage !== '' ? failureMessage : errorMessages[problem]
}
