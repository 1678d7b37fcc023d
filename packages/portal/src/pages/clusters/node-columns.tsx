import type { Schemas } from '../../api/client.ts'
import type { VirtualColumn } from '../../ui/virtual-table.tsx'

type WithFacts = Pick<Schemas['Node'], 'facts'>
type Facts = NonNullable<WithFacts['facts']>

const gibibyte = 2 ** 30

function bytesText(bytes: number | undefined): string {
  if (bytes === undefined) return ''
  const size = bytes / gibibyte
  return `${size.toLocaleString('en', { maximumFractionDigits: size < 10 ? 1 : 0 })} GiB`
}

function freeText({ rootDiskBytes = 0, rootDiskFreeBytes }: Facts): string {
  if (rootDiskFreeBytes === undefined || rootDiskBytes === 0) return ''
  return `${Math.round((rootDiskFreeBytes / rootDiskBytes) * 100)} % of ${bytesText(rootDiskBytes)}`
}

/** Columns of the facts that relays report. They are empty until the relay has reported facts. */
export const factColumns: VirtualColumn<WithFacts>[] = [
  {
    title: 'Operating system',
    sort: 'os',
    width: 'minmax(9rem, 2fr)',
    cell: ({ facts }) => <span title={facts?.kernel}>{facts?.osVersion ?? facts?.os}</span>,
  },
  { title: 'Architecture', sort: 'arch', width: '7rem', narrow: 'hidden', cell: ({ facts }) => facts?.arch },
  { title: 'CPUs', sort: 'cpus', width: '3rem', isEnd: true, narrow: 'hidden', cell: ({ facts }) => facts?.cpus },
  {
    title: 'Memory',
    sort: 'memoryBytes',
    width: '5rem',
    isEnd: true,
    narrow: 'hidden',
    cell: ({ facts }) => bytesText(facts?.memoryBytes),
  },
  {
    title: 'Free disk',
    sort: 'rootDiskFreeBytes',
    width: '9rem',
    isEnd: true,
    cell: ({ facts }) => facts && freeText(facts),
  },
]
