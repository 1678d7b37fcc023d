import { type ClientOptions, type Credentials, type RegistryClient, registryClient } from '@platform/oci/client'
import type { RegistryError } from '@platform/oci/error'
import type { Transport } from '@platform/oci/transport'
import * as z from 'zod'
import { elapsedMs } from '../clock.ts'
import { config } from '../config.ts'
import { log } from '../log.ts'
import { outboundFetch, OutboundError } from '../outbound/outbound.ts'
import { parseAllowlist } from '../lib/settings/allowlist.ts'
import { readSecret } from '../aws/secrets.ts'

export const registryAllowlist: ReadonlySet<string> = new Set([
  ...parseAllowlist(config.PLAT_OUTBOUND_ALLOW),
  ...parseAllowlist(config.PLAT_REGISTRY_ALLOW),
])

/** A time on the clock of `elapsedMs`. */
interface Deadline {
  untilMs?: number
}

const transport =
  ({ untilMs = Infinity }: Deadline): Transport =>
  async (url, request) => {
    const timeoutMs = Math.min(request.timeoutMs, untilMs - elapsedMs())
    if (timeoutMs <= 0) throw new OutboundError('timed_out')
    return outboundFetch(url, { ...request, timeoutMs }, { allow: registryAllowlist })
  }

/**
 * Uses HTTPS, or plain HTTP for a loopback host. Private addresses are reachable only if `PLAT_REGISTRY_ALLOW` or
 * `PLAT_OUTBOUND_ALLOW` lists them. Throws `RegistryError` for an invalid host.
 */
export const registryClientFor = (
  registry: string,
  { credentials = () => credentialsOf(registry), ...deadline }: Deadline & Pick<ClientOptions, 'credentials'> = {},
): RegistryClient => registryClient(registry, { transport: transport(deadline), credentials })

const privateRegistryMessage = 'The registry has a private address. The operator can allow it with PLAT_REGISTRY_ALLOW.'

export const describeRegistryError = ({ cause, message }: RegistryError): string =>
  cause instanceof OutboundError && cause.problem === 'address_not_allowed' ? privateRegistryMessage : message

const credentialsTtlMs = 5 * 60_000

const RegistryCredentials = z.record(z.string(), z.object({ username: z.string(), password: z.string() }))

let cachedCredentials: { credentials: z.infer<typeof RegistryCredentials>; untilMs: number } | undefined

async function credentialsOf(registry: string): Promise<Credentials | undefined> {
  if (cachedCredentials === undefined || cachedCredentials.untilMs <= elapsedMs()) {
    cachedCredentials = {
      credentials: parseCredentials((await readSecret(config.PLAT_SECRET_REGISTRIES)) ?? '{}'),
      untilMs: elapsedMs() + credentialsTtlMs,
    }
  }
  return Object.hasOwn(cachedCredentials.credentials, registry) ? cachedCredentials.credentials[registry] : undefined
}

/**
 * Returns no credentials if the secret is invalid, because public images need none. The text contains passwords, so it
 * is not logged.
 */
function parseCredentials(text: string): z.infer<typeof RegistryCredentials> {
  try {
    return RegistryCredentials.parse(JSON.parse(text))
  } catch {
    log('error', 'Failed to read registry credentials', { secret: config.PLAT_SECRET_REGISTRIES })
    return {}
  }
}
