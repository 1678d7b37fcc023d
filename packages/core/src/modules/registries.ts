import { type ClientOptions, type Credentials, type RegistryClient, registryClient } from '@platform/oci/client'
import { type RegistryError } from '@platform/oci/error'
import { type Transport } from '@platform/oci/transport'
import * as z from 'zod'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { log } from '../log.ts'
import { outboundFetch, OutboundError } from '../outbound/outbound.ts'
import { parseAllowlist } from '../lib/settings/allowlist.ts'
import { readSecret } from '../aws/secrets.ts'

/** The registries that modules come from, asked by the platform's one way out and with the operator's credentials. */

/** Private targets that may be asked for images and manifests. */
export const registryAllowlist: ReadonlySet<string> = new Set([
  ...parseAllowlist(config.PLAT_OUTBOUND_ALLOW),
  ...parseAllowlist(config.PLAT_REGISTRY_ALLOW),
])

/** Until when an exchange has to be over, in this process's time. */
interface Limits {
  untilMs?: number
}

const transport =
  ({ untilMs = Infinity }: Limits): Transport =>
  async (url, request) => {
    const timeoutMs = Math.min(request.timeoutMs, untilMs - now())
    if (timeoutMs <= 0) throw new OutboundError('timed_out')
    return outboundFetch(url, { ...request, timeoutMs }, { allow: registryAllowlist })
  }

/**
 * A client of a registry (`host[:port]`): https, and plain http where the setting names a target on this machine. No call
 * yet; the credentials are asked for where the registry asks for them. Throws `RegistryFailure` for what is no host.
 */
export const registryClientFor = (
  registry: string,
  { credentials = () => credentialsOf(registry), ...limits }: Limits & Pick<ClientOptions, 'credentials'> = {},
): RegistryClient => registryClient(registry, { transport: transport(limits), credentials })

const privateRegistry = 'The registry has a private address. The operator may allow it by PLAT_REGISTRY_ALLOW.'

/** What people are told of a registry that was of no help. */
export const describeRegistryError = ({ cause, message }: RegistryError): string =>
  cause instanceof OutboundError && cause.problem === 'address_not_allowed' ? privateRegistry : message

const keepMs = 5 * 60_000

const Held = z.record(z.string(), z.object({ username: z.string(), password: z.string() }))

let held: { credentials: z.infer<typeof Held>; untilMs: number } | undefined

/** What the operator has given for a registry. One Secrets Manager call per five minutes. */
async function credentialsOf(registry: string): Promise<Credentials | undefined> {
  if (held === undefined || held.untilMs <= now()) {
    held = { credentials: parse((await readSecret(config.PLAT_SECRET_REGISTRIES)) ?? '{}'), untilMs: now() + keepMs }
  }
  return Object.hasOwn(held.credentials, registry) ? held.credentials[registry] : undefined
}

/** Without credentials public images can be had still. The text is not logged: it holds passwords. */
function parse(text: string): z.infer<typeof Held> {
  try {
    return Held.parse(JSON.parse(text))
  } catch {
    log('error', 'The credentials of registries cannot be read', { secret: config.PLAT_SECRET_REGISTRIES })
    return {}
  }
}
