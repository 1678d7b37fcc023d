import { type Zippable, zipSync } from 'fflate'

export type Files = Readonly<Record<string, Uint8Array>>

/** Zip stores local time. A constant makes archives identical on every machine. */
const earliestDate = (): Date => new Date(1980, 0, 1)

const unix = 3
/** Readable by everyone: Lambda runs functions as another user. */
const attrs = 0o100644 << 16

/** Creates a zip archive that depends only on paths and contents. */
export function zipOf(files: Files): Uint8Array {
  const mtime = earliestDate()
  const paths = Object.keys(files).toSorted()
  const entries = paths.map((path) => [path, [files[path], { mtime, os: unix, attrs, level: 9 }]])
  const zippable: Zippable = Object.fromEntries(entries)
  return zipSync(zippable)
}
