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

/** Registries of modules, called through the outbound guard with the operator's credentials. */

/** Private targets that images and manifests may come from. */
export const registryAllowlist: ReadonlySet<string> = new Set([
  ...parseAllowlist(config.PLAT_OUTBOUND_ALLOW),
  ...parseAllowlist(config.PLAT_REGISTRY_ALLOW),
])

/** The deadline of a registry exchange. */
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
 * A client of a registry (`host[:port]`): https, or plain http if the setting names a local target. Makes no call;
 * reads the credentials when the registry requests them. Throws `RegistryError` for an invalid host.
 */
export const registryClientFor = (
  registry: string,
  { credentials = () => credentialsOf(registry), ...limits }: Limits & Pick<ClientOptions, 'credentials'> = {},
): RegistryClient => registryClient(registry, { transport: transport(limits), credentials })

const privateRegistry = 'The registry has a private address. The operator may allow it by PLAT_REGISTRY_ALLOW.'

/** The reason of a registry error, for users. */
export const describeRegistryError = ({ cause, message }: RegistryError): string =>
  cause instanceof OutboundError && cause.problem === 'address_not_allowed' ? privateRegistry : message

const keepMs = 5 * 60_000

const Held = z.record(z.string(), z.object({ username: z.string(), password: z.string() }))

let held: { credentials: z.infer<typeof Held>; untilMs: number } | undefined

/** The operator's credentials for a registry. One Secrets Manager call per five minutes. */
async function credentialsOf(registry: string): Promise<Credentials | undefined> {
  if (held === undefined || held.untilMs <= now()) {
    held = { credentials: parse((await readSecret(config.PLAT_SECRET_REGISTRIES)) ?? '{}'), untilMs: now() + keepMs }
  }
  return Object.hasOwn(held.credentials, registry) ? held.credentials[registry] : undefined
}

/** Public images need no credentials. The text is not logged, because it contains passwords. */
function parse(text: string): z.infer<typeof Held> {
  try {
    return Held.parse(JSON.parse(text))
  } catch {
    log('error', 'Failed to read registry credentials', { secret: config.PLAT_SECRET_REGISTRIES })
    return {}
  }
}
