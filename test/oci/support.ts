import { type ClientOptions, type RegistryClient, registryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import { RegistryError } from '@platform/oci/error'
import { plainTransport } from '@platform/oci/plain-transport'
import type { Transport } from '@platform/oci/transport'
import { writeLayout } from '../support/oci-layout.ts'
import { outputOf } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

export const ada = { username: 'ada', password: 'correct horse battery' }

/** A client of a registry on this machine, and the requests that it has sent so far. */
export function clientOf(
  host: string,
  options: Partial<ClientOptions> = {},
): { client: RegistryClient; sent: string[] } {
  const sent: string[] = []
  const transport: Transport = (url, request) => {
    const { pathname } = new URL(url)
    sent.push(`${request.method} ${pathname}`)
    return plainTransport(url, request)
  }
  return { client: registryClient(host, { transport, ...options }), sent }
}

/** The failure that some work ends in; anything else that it ends in is a failure of the test. */
export async function failureOf(work: Promise<unknown>): Promise<RegistryError> {
  const outcome = await work.then(
    () => 'success',
    (error: unknown) => error,
  )
  if (outcome instanceof RegistryError) return outcome
  throw new Error('It did not end in a RegistryError.', { cause: outcome })
}

/** All that a list tells. */
export async function all(list: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = []
  for await (const item of list) found.push(item)
  return found
}

export const labels = { 'org.platform.module.id': 'hello' }

/** Pushes an image as `team/hello:1.0.0` by skopeo, and tells the digest that skopeo then finds. */
export async function pushBySkopeo(host: string, architectures?: readonly string[]): Promise<string> {
  await using folder = await temporaryFolder()
  await writeLayout(folder.path, labels, architectures)
  const target = `docker://${host}/team/hello:1.0.0`
  const credentials = `${ada.username}:${ada.password}`
  const options = ['--all', '--quiet', '--dest-tls-verify=false', '--dest-creds', credentials]
  await outputOf('skopeo', 'copy', ...options, `oci:${folder.path}:latest`, target)
  return digestOf(await outputOf('skopeo', 'inspect', '--raw', '--tls-verify=false', '--creds', credentials, target))
}

/** A blob by its text. */
export const blobOf = (text: string) => ({
  mediaType: 'text/plain',
  digest: digestOf(text),
  size: Buffer.byteLength(text),
})

/** A way out on which some origins are servers of this machine, and all others nowhere. */
export const routed =
  (servers: Readonly<Record<string, string>>): Transport =>
  (url, request) => {
    const { origin } = new URL(url)
    const server = servers[origin]
    if (server === undefined) throw new Error('There is no way there.')
    return plainTransport(url.replace(origin, server), request)
  }
