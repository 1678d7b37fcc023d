/** An image reference with its registry: `registry[:port]/repository[:tag][@sha256:digest]`. */
export interface ImageReference {
  registry: string
  repository: string
  tag?: string
  /** `sha256:` and 64 hexadecimal digits. */
  digest?: string
}

const host = String.raw`(?:localhost|(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?|[a-z0-9-]+(?=:[0-9])|\[[0-9a-f:]+\])(?::[0-9]{1,5})?`
const pathComponent = String.raw`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
const referencePattern = new RegExp(
  String.raw`^(?<registry>${host})/(?<repository>${pathComponent}(?:/${pathComponent})*)(?::(?<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@(?<digest>sha256:[0-9a-f]{64}))?$`,
)

/** Returns undefined if the text is malformed, longer than 512 characters, or names no registry. */
export function parseReference(text: string): ImageReference | undefined {
  const groups = text.length <= 512 ? referencePattern.exec(text)?.groups : undefined
  if (groups === undefined) return undefined
  const { registry = '', repository = '', tag, digest } = groups
  return { registry, repository, ...(tag !== undefined && { tag }), ...(digest !== undefined && { digest }) }
}

export const formatReference = ({ registry, repository, tag, digest }: ImageReference): string =>
  `${registry}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`

/** Returns the digest, else the tag, else `latest`. */
export const targetOf = ({ tag, digest }: ImageReference): string => digest ?? tag ?? 'latest'
