import { ProxyError } from '@platform/relay/proxy'
import { messageOf } from '../exit.ts'

interface Explanation {
  problem: string
  next: string
  /** Whether another attempt fails in the same way. */
  isPermanent?: true
}

const checkAdvice = 'Check the address, and that the platform is running.'
const trustAdvice =
  'If it is from a private authority, set NODE_EXTRA_CA_CERTS to the file with the certificate of the authority.'
const untrustedCertificate: Explanation = {
  problem: 'its certificate is not trusted',
  next: trustAdvice,
  isPermanent: true,
}

const explanations: Record<string, Explanation> = {
  ECONNREFUSED: { problem: 'nothing listens there', next: checkAdvice },
  ECONNRESET: { problem: 'the connection was closed', next: checkAdvice },
  ENOTFOUND: { problem: 'the name does not exist', next: 'Check the address.' },
  EAI_AGAIN: { problem: 'the name cannot be resolved', next: 'Check the network and the name server of this machine.' },
  ENETUNREACH: { problem: 'the network is unreachable', next: 'Check the network of this machine.' },
  EHOSTUNREACH: { problem: 'the host is unreachable', next: 'Check the address and the network of this machine.' },
  ETIMEDOUT: { problem: 'the connection timed out', next: 'Check the address and firewalls.' },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrustedCertificate,
  UNABLE_TO_GET_ISSUER_CERT: untrustedCertificate,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrustedCertificate,
  SELF_SIGNED_CERT_IN_CHAIN: untrustedCertificate,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrustedCertificate,
  CERT_UNTRUSTED: untrustedCertificate,
  CERT_HAS_EXPIRED: {
    problem: 'its certificate has expired',
    next: 'Renew it, and check the clock of this machine.',
    isPermanent: true,
  },
  CERT_NOT_YET_VALID: {
    problem: 'its certificate is not valid yet',
    next: 'Check the clock of this machine.',
    isPermanent: true,
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    problem: 'its certificate is for another name',
    next: 'Use the name in the certificate as the address.',
    isPermanent: true,
  },
  // The server speaks plain HTTP or no version of TLS that this Node.js accepts.
  EPROTO: { problem: 'the TLS handshake failed', next: 'Check the port, and whether the server uses https.' },
}

const explanationOf = (failure: unknown): { code: string; explanation: Explanation } | undefined => {
  const code = failure instanceof Error && 'code' in failure ? String(failure.code) : ''
  const explanation = Object.hasOwn(explanations, code) ? explanations[code] : undefined
  return explanation && { code, explanation }
}

export const isPermanent = (failure: unknown): boolean => explanationOf(failure)?.explanation.isPermanent ?? false

export function unreachableMessage({ origin }: URL, failure: unknown): string {
  const { code, explanation } = explanationOf(failure) ?? {}
  if (explanation !== undefined)
    return `No response from ${origin}: ${explanation.problem} (${code}). ${explanation.next}`
  // The message of a proxy error names the proxy and the next step.
  if (failure instanceof ProxyError) return `No response from ${origin}: ${failure.message}.`
  return `No response from ${origin} (${messageOf(failure)}). ${checkAdvice}`
}
