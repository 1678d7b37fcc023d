import { LambdaClient } from '@aws-sdk/client-lambda'
import { SignatureV4 } from '@smithy/signature-v4'

const timeoutMs = 15_000

export interface SignedPost {
  service: string
  region: string
  headers: Record<string, string>
  body: string
}

/**
 * Signs and sends a request to an AWS service for which the platform has no client. Rejects if no response arrives in
 * time; an error status does not reject.
 */
export async function signedPost({ service, region, headers, body }: SignedPost): Promise<Response> {
  // All clients of the SDK resolve credentials in the same way.
  const { config } = new LambdaClient({ region })
  const url = new URL(endpointOf(service, region))
  const signer = new SignatureV4({ credentials: await config.credentials(), region, service, sha256: config.sha256 })
  const signedRequest = await signer.sign({
    method: 'POST',
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    headers: { host: url.host, ...headers },
    body,
  })
  const signal = AbortSignal.timeout(timeoutMs)
  return fetch(url, { method: 'POST', headers: signedRequest.headers, body, signal, redirect: 'manual' })
}

export const endpointOf = (service: string, region: string): string =>
  process.env[`AWS_ENDPOINT_URL_${service.toUpperCase()}`] ||
  process.env['AWS_ENDPOINT_URL'] ||
  `https://${service}.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
