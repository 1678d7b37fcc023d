import { execFileSync } from 'node:child_process'
import { closeSync, constants, fchownSync, lstatSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Stream } from '../backlog.ts'
import type { Pipes } from './child.ts'
import type { ScriptUser } from './user.ts'

/**
 * Named pipes for the output of a script. The pipes of Node.js are sockets, and a script cannot open `/dev/stdout` or
 * `/dev/stderr` if they are sockets.
 */
export class FifoPair {
  readonly pipes: Pipes
  readonly writers: Record<Stream, number>

  constructor(folder: string, { isOther, uid, gid }: ScriptUser) {
    const [stdout, stderr] = takeFifos(folder)
    this.writers = { stdout: stdout.writer, stderr: stderr.writer }
    try {
      if (isOther) for (const writer of Object.values(this.writers)) fchownSync(writer, uid, gid)
    } catch (error) {
      for (const { reader, writer } of [stdout, stderr]) {
        closeSync(reader)
        closeSync(writer)
      }
      throw error
    }
    this.pipes = { stdout: readerOf(stdout), stderr: readerOf(stderr) }
  }

  /** Closes the relay's write ends, so that the readers receive end-of-file when the script ends. */
  releaseWriters(): void {
    closeSync(this.writers.stdout)
    closeSync(this.writers.stderr)
  }
}

type Fifo = Record<'reader' | 'writer', number>

/** A file system in memory. On a disk, creating the files takes a considerable part of the CPU time of a short job. */
const memoryFolder = '/dev/shm'

const stickyBit = 0o1000

/** Without the sticky bit, other users can replace files of the relay. */
function isProtected(folder: string): boolean {
  const status = lstatSync(folder)
  return status.isDirectory() && status.uid === 0 && (status.mode & stickyBit) !== 0
}

/** Pairs that are opened in advance, because each start of `mkfifo` takes a few milliseconds. */
const pairs: [Fifo, Fifo][] = []
const pairCount = 16

function takeFifos(parent: string): [Fifo, Fifo] {
  if (pairs.length === 0) pairs.push(...openReserve(parent))
  return pairs.pop()!
}

function openReserve(parent: string): [Fifo, Fifo][] {
  try {
    if (isProtected(memoryFolder)) return openPairs(memoryFolder, pairCount)
  } catch {
    // The folder may be missing, full or read-only.
  }
  try {
    return openPairs(parent, pairCount)
  } catch {
    // There may be too few free file descriptors for several pairs.
    return openPairs(parent, 1)
  }
}

/** The files are removed at once: `/dev/stdout` opens the pipe of a process without its path. */
function openPairs(parent: string, count: number): [Fifo, Fifo][] {
  const folder = mkdtempSync(join(parent, 'platform-relay-'))
  const opened: number[] = []
  const open = (path: string, flags: number): number => {
    const descriptor = openSync(path, flags)
    opened.push(descriptor)
    return descriptor
  }
  // Without O_NONBLOCK, opening would block until there is a writer.
  const openFifo = (path: string): Fifo => ({
    reader: open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK),
    writer: open(path, constants.O_WRONLY | constants.O_NOFOLLOW),
  })
  try {
    const paths = Array.from({ length: count }, (_, index) => [join(folder, `${index}o`), join(folder, `${index}e`)])
    execFileSync('mkfifo', ['-m', '600', ...paths.flat()], { stdio: 'ignore' })
    return paths.map(([stdout = '', stderr = '']) => [openFifo(stdout), openFifo(stderr)])
  } catch (error) {
    opened.forEach((descriptor) => closeSync(descriptor))
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const readerOf = ({ reader }: Fifo): Socket => new Socket({ fd: reader, readable: true, writable: false })
