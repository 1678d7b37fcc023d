import { type Zippable, zipSync } from 'fflate'

/** Files by their paths. */
export type Files = Readonly<Record<string, Uint8Array>>

/** Archives keep local time: this makes the same bytes everywhere, and is the earliest that they can say. */
const earliest = (): Date => new Date(1980, 0, 1)

const unix = 3
/** A plain file that everybody may read: Lambda runs functions as a user of its own. */
const attrs = 0o100644 << 16

/** Files as a zip archive. The same files make the same bytes, whenever, wherever and in whatever order they are given. */
export function zipOf(files: Files): Uint8Array {
  const mtime = earliest()
  const sorted = Object.keys(files).toSorted()
  const entries = sorted.map((path) => [path, [files[path], { mtime, os: unix, attrs, level: 9 }]])
  const zippable: Zippable = Object.fromEntries(entries)
  return zipSync(zippable)
}
