import { generateKeyPairSync, sign } from 'node:crypto'

const tagged = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts)
  const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}
const sequence = (...parts: Uint8Array[]) => tagged(0x30, ...parts)
const time = (text: string) => tagged(0x17, Buffer.from(text))
const sha256WithEcdsa = sequence(Buffer.from('06082a8648ce3d040302', 'hex'))
const nameOf = (host: string) =>
  sequence(tagged(0x31, sequence(Buffer.from('0603550403', 'hex'), tagged(0x0c, Buffer.from(host)))))

/**
 * Returns a self-signed certificate of a host and its private key, both as PEM. Node.js cannot issue certificates, so
 * this code writes the DER.
 */
export function selfSigned(host: string): { key: string; cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const content = sequence(
    Buffer.from([2, 1, 1]),
    sha256WithEcdsa,
    nameOf(host),
    sequence(time('200101000000Z'), time('491231235959Z')),
    nameOf(host),
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = tagged(0x03, Buffer.from([0]), sign('sha256', content, privateKey))
  const body = sequence(content, sha256WithEcdsa, signature).toString('base64')
  const cert = `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}
