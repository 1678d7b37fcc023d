import * as z from 'zod'
import { statementType } from './payload.ts'

/** Media type of a referrer that is a signature, of its only layer, and of the document in the layer. */
export const bundleType = 'application/vnd.dev.sigstore.bundle.v0.3+json'

/** Returns the bytes that a DSSE signature covers: the payload type and the payload, with their lengths. */
export function envelopeBytes(payloadType: string, payload: Buffer): Buffer {
  const head = `DSSEv1 ${Buffer.byteLength(payloadType)} ${payloadType} ${payload.length} `
  return Buffer.concat([Buffer.from(head), payload])
}

/** Serializes a Sigstore bundle, version 0.3. `keyHint` only indicates which key to try. */
export const serializeBundle = (payload: Buffer, signature: Buffer, keyHint: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      mediaType: bundleType,
      verificationMaterial: { publicKey: { hint: keyHint } },
      dsseEnvelope: {
        payload: payload.toString('base64'),
        payloadType: statementType,
        signatures: [{ sig: signature.toString('base64') }],
      },
    }),
  )

/** Accepts public keys only. A certificate requires a trusted authority, and there is none. */
const Bundle = z.object({
  mediaType: z.literal(bundleType),
  verificationMaterial: z.object({ publicKey: z.object({}) }),
  dsseEnvelope: z.object({
    payload: z.string(),
    payloadType: z.literal(statementType),
    signatures: z.tuple([z.object({ sig: z.string() })]),
  }),
})

export interface ParsedBundle {
  payload: Buffer
  signedBytes: Buffer
  signature: Buffer
}

/** Returns undefined for any other document. Does not inspect the payload. */
export function parseBundle(bytes: Buffer): ParsedBundle | undefined {
  const { data } = Bundle.safeParse(parseJson(bytes))
  if (data === undefined) return undefined
  const { payload: text, payloadType, signatures } = data.dsseEnvelope
  const payload = Buffer.from(text, 'base64')
  return {
    payload,
    signedBytes: envelopeBytes(payloadType, payload),
    signature: Buffer.from(signatures[0].sig, 'base64'),
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
