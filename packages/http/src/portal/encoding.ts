import { type Encoding, encodings, type PortalFile } from './pack.ts'

/** The shortest way in which a file can be sent to a client that says `accepted` (`Accept-Encoding`, RFC 9110). */
export function encodingFor(accepted: string | undefined, { bodies }: PortalFile): Encoding {
  const weights = new Map((accepted ?? '').split(',').map(weightOf))
  const isAccepted = (encoding: Encoding) => (weights.get(encoding) ?? weights.get('*') ?? 0) > 0
  // Plain is what everybody can read: better than nothing even to whoever refuses it.
  return encodings.find((each) => bodies[each] !== undefined && isAccepted(each)) ?? 'identity'
}

/** `gzip;q=0.8` */
function weightOf(part: string): readonly [name: string, weight: number] {
  const [name = '', ...parameters] = part.split(';').map((each) => each.trim().toLowerCase())
  const weight = parameters.find((each) => each.startsWith('q='))?.slice('q='.length)
  return [name, weight === undefined ? 1 : Number(weight)]
}
