import { randomBytes } from 'node:crypto'
import { ber, canary, entryOf, hostile, message, references, result } from './directories.ts'
import { ada, type Answer, at, bind, bindDone, search, searchDone, writing } from './hostile-directory.ts'

/** What a directory may answer instead of what it should. */

const huge = Buffer.alloc(10 * 1024 * 1024, 'x')
export const tiny = (count: number) => (id: number) =>
  Buffer.concat(Array<Buffer>(count).fill(message(id, references())))
/** The set of values says that it is longer than the message. */
const lying = (id: number) =>
  message(
    id,
    ber(
      0x64,
      ber(4, Buffer.from('uid=ada,ou=people')),
      ber(0x30, ber(0x30, ber(4, Buffer.from('uid')), Buffer.from('318400ffffff', 'hex'))),
    ),
  )

/** Answers the n-th request of a kind so, and others as it should. */
const answers = (operation: number, nth: number, ...parts: ((id: number) => Uint8Array)[]): (() => Answer) =>
  at(operation, nth, writing(...parts))

/** What looks like a directory that cannot be asked. */
export const unreachable: [string, () => Answer][] = [
  ['is silent', () => () => true],
  ['ends the connection at the first request', at(bind, 1, (socket) => void socket.end())],
  ['breaks the connection at the search', at(search, 1, (socket) => void socket.destroy())],
  ['breaks the connection when the user binds', at(bind, 2, (socket) => void socket.destroy())],
  ['speaks HTTP', answers(bind, 1, () => Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))],
  ['answers noise', answers(bind, 1, () => randomBytes(5000))],
  ['answers zeros', answers(bind, 1, () => Buffer.alloc(5000))],
  ['answers a message of 4 GB', answers(bind, 1, () => Buffer.from('3084ffffffff', 'hex'))],
  ['answers a length without an end', answers(bind, 1, () => Buffer.from('30800201', 'hex'))],
  ['answers a bind without a code', answers(bind, 1, (id) => message(id, Buffer.from('6100', 'hex')))],
  ['answers the user’s bind without a code', answers(bind, 2, (id) => message(id, Buffer.from('6100', 'hex')))],
  [
    'answers the user’s bind with an empty code',
    answers(bind, 2, (id) => message(id, ber(0x61, ber(10), ber(4), ber(4)))),
  ],
  ['answers the user’s bind with a search', answers(bind, 2, (id) => message(id, ada))],
  ['answers the user’s bind with half of it', answers(bind, 2, (id) => bindDone(id).subarray(0, 6))],
  ['answers another question', answers(bind, 2, (id) => bindDone(id + 1))],
  ['answers the search with a bind', answers(search, 1, (id) => bindDone(id))],
  ['is busy', answers(bind, 2, (id) => bindDone(id, 51))],
  [
    'refers the bind to somebody else',
    answers(bind, 2, (id) => message(id, result(0x61, 10, ber(0xa3, Buffer.from('ldap://x'))))),
  ],
  ['refers the search to itself', answers(search, 1, (id) => searchDone(id, 10))],
  ['sends an entry with a set beyond its end', answers(search, 1, lying)],
  ['sends an entry of 10 MB', answers(search, 1, (id) => message(id, ber(0x64, ber(4, huge))))],
  [
    'sends entries without end',
    at(search, 1, (socket, id) => {
      const more = () =>
        void (socket.destroyed || socket.write(Buffer.concat(Array<Buffer>(200).fill(message(id, ada))), more))
      more()
    }),
  ],
  [
    'sends references without end',
    at(search, 1, (socket, id) => {
      const more = () => void (socket.destroyed || socket.write(tiny(9000)(id), more))
      more()
    }),
  ],
  ['says goodbye on its own accord', answers(search, 1, () => message(0, result(0x78, 52)))],
  [
    'drips one byte after the other',
    at(bind, 1, (socket) => {
      const timer = setInterval(() => socket.write('0'), 100)
      socket.on('close', () => clearInterval(timer))
    }),
  ],
]

/** What is an answer, and a refusal. */
export const refusing: [string, () => Answer][] = [
  ['refuses the user', answers(bind, 2, (id) => bindDone(id, 49))],
  ['knows nobody', answers(search, 1, (id) => searchDone(id))],
  [
    'answers the search of one with two',
    answers(
      search,
      1,
      (id) => message(id, ada),
      (id) => message(id, ada),
      (id) => searchDone(id),
    ),
  ],
  [
    'answers somebody else than was asked for',
    answers(
      search,
      1,
      (id) => message(id, entryOf('uid=root,ou=people', { uid: 'root' })),
      (id) => searchDone(id),
    ),
  ],
  [
    'answers an entry without a name',
    answers(
      search,
      1,
      (id) => message(id, entryOf('', { uid: 'ada' })),
      (id) => searchDone(id),
    ),
  ],
  [
    'answers an entry that is called like a mechanism',
    answers(
      search,
      1,
      (id) => message(id, entryOf('EXTERNAL', { uid: 'ada' })),
      (id) => searchDone(id),
    ),
  ],
  [
    'answers the search with references alone',
    answers(
      search,
      1,
      (id) => message(id, references(`ldap://127.0.0.1:${canary.port}/`, `ldap://localhost:${hostile.port}/`)),
      (id) => searchDone(id),
    ),
  ],
]
