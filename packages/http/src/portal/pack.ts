import * as z from 'zod'

// The portal's build is one file, so that a process serves exactly one build and no request is mapped to a file system
// path. The first line is a JSON index; the contents of the files follow.

/** Content encodings. The encoding with the smallest result comes first. */
export const encodings = ['br', 'gzip', 'identity'] as const
export type Encoding = (typeof encodings)[number]

export interface PortalFile {
  contentType: string
  /** Whether the name contains a content hash, so that browsers may cache the file forever. */
  isHashed: boolean
  /** Hash of the content for the ETag. */
  tag: string
  bodies: Readonly<{ identity: Uint8Array } & Partial<Record<Encoding, Uint8Array>>>
}

/** `shell` is the page that loads the other files. `files` is keyed by URL path. */
export interface PortalFiles {
  shell: PortalFile
  files: ReadonlyMap<string, PortalFile>
}

const Range = z.tuple([z.int(), z.int()])
const Entry = z.object({
  contentType: z.string(),
  isHashed: z.boolean(),
  tag: z.string(),
  ranges: z.object({ identity: Range, gzip: Range.exactOptional(), br: Range.exactOptional() }),
})
type Entry = z.infer<typeof Entry>
const Index = z.object({ shell: Entry, files: z.record(z.string(), Entry) })

const newlineByte = 10

export function packFiles({ shell, files }: PortalFiles): Uint8Array {
  const bodies: Uint8Array[] = []
  let end = 0
  const append = (body: Uint8Array): z.infer<typeof Range> => {
    bodies.push(body)
    return [end, (end += body.length)]
  }
  const entryOf = ({ bodies: { identity, gzip, br }, ...file }: PortalFile): Entry => ({
    ...file,
    ranges: { identity: append(identity), ...(gzip && { gzip: append(gzip) }), ...(br && { br: append(br) }) },
  })
  const entries = [...files].map(([path, file]) => [path, entryOf(file)] as const)
  const index: z.infer<typeof Index> = { shell: entryOf(shell), files: Object.fromEntries(entries) }
  return Buffer.concat([Buffer.from(`${JSON.stringify(index)}\n`), ...bodies])
}

/** Unpacks the result of `packFiles`. Throws if the index is invalid. */
export function unpackFiles(pack: Uint8Array): PortalFiles {
  const bodiesStart = pack.indexOf(newlineByte) + 1
  const index = Index.parse(JSON.parse(Buffer.from(pack.subarray(0, bodiesStart)).toString()))
  const bodyAt = ([from, to]: z.infer<typeof Range>) => pack.subarray(bodiesStart + from, bodiesStart + to)
  const fileOf = ({ ranges: { identity, gzip, br }, ...file }: Entry): PortalFile => ({
    ...file,
    bodies: { identity: bodyAt(identity), ...(gzip && { gzip: bodyAt(gzip) }), ...(br && { br: bodyAt(br) }) },
  })
  const files = Object.entries(index.files).map(([path, entry]) => [path, fileOf(entry)] as const)
  return { shell: fileOf(index.shell), files: new Map(files) }
}
