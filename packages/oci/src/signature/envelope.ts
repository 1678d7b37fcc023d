import * as z from 'zod'
import { statementType } from './payload.ts'

/** The media type of a referrer that is a signature, of its one layer, and of the document in it. */
export const bundleType = 'application/vnd.dev.sigstore.bundle.v0.3+json'

/** What the signature of an envelope is over (DSSE): the kind of the text, and the text. */
export function envelopeBytes(payloadType: string, payload: Buffer): Buffer {
  const head = `DSSEv1 ${Buffer.byteLength(payloadType)} ${payloadType} ${payload.length} `
  return Buffer.concat([Buffer.from(head), payload])
}

/** A signed statement as a document (sigstore bundle 0.3). `keyHint` only tells which key to try. */
export const sealBundle = (payload: Buffer, signature: Buffer, keyHint: string): Buffer =>
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

/** A certificate in place of the key would have to be believed: there is nobody here to believe. */
const Bundle = z.object({
  mediaType: z.literal(bundleType),
  verificationMaterial: z.object({ publicKey: z.object({}) }),
  dsseEnvelope: z.object({
    payload: z.string(),
    payloadType: z.literal(statementType),
    signatures: z.tuple([z.object({ sig: z.string() })]),
  }),
})

export interface OpenedBundle {
  payload: Buffer
  /** What the signature is over. */
  signed: Buffer
  signature: Buffer
}

/** What is in such a document; undefined where it is another. Its payload is not looked into. */
export function openBundle(bytes: Buffer): OpenedBundle | undefined {
  const { data } = Bundle.safeParse(parsed(bytes))
  if (data === undefined) return undefined
  const { payload: text, payloadType, signatures } = data.dsseEnvelope
  const payload = Buffer.from(text, 'base64')
  return { payload, signed: envelopeBytes(payloadType, payload), signature: Buffer.from(signatures[0].sig, 'base64') }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
