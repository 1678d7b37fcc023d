import { useQuery } from '@tanstack/react-query'
import {
  Bell,
  Blocks,
  Building2,
  CircleArrowUp,
  CircleUser,
  HeartPulse,
  KeyRound,
  LayoutDashboard,
  type LucideIcon,
  Puzzle,
  ScrollText,
  Server,
  SquareTerminal,
  Users,
  Webhook,
} from 'lucide-react'
import { createElement } from 'react'

/** Icons of the platform's own entries; others are fetched. */
const known: Record<string, LucideIcon> = {
  bell: Bell,
  blocks: Blocks,
  'building-2': Building2,
  'circle-arrow-up': CircleArrowUp,
  'circle-user': CircleUser,
  'heart-pulse': HeartPulse,
  'key-round': KeyRound,
  'layout-dashboard': LayoutDashboard,
  'scroll-text': ScrollText,
  server: Server,
  'square-terminal': SquareTerminal,
  users: Users,
  webhook: Webhook,
}

type Part = readonly [tag: string, attributes: Readonly<Record<string, string>>]

/** An icon by its Lucide name, as in navigation entries. */
export function Icon({ name, size = 18 }: { name: string; size?: number }) {
  // Modules choose these names.
  const Known = Object.hasOwn(known, name) ? known[name] : undefined
  return Known ? <Known size={size} aria-hidden /> : <FetchedIcon name={name} size={size} />
}

function FetchedIcon({ name, size }: { name: string; size: number }) {
  const letter = /^[a-z]/.exec(name)?.[0]
  const { data } = useQuery({
    queryKey: ['icons', letter],
    enabled: letter !== undefined,
    staleTime: Infinity,
    queryFn: async (): Promise<Record<string, Part[]>> => (await fetch(`/icons/${letter}.json`)).json(),
  })
  const parts = data && Object.hasOwn(data, name) ? data[name] : undefined
  if (!Array.isArray(parts)) return <Puzzle size={size} aria-hidden />
  return (
    <svg viewBox="0 0 24 24" width={size} height={size} className="lucide" aria-hidden fill="none">
      {parts.filter(([tag]) => drawn.has(tag)).map(([tag, attributes]) => createElement(tag, attributes))}
    </svg>
  )
}

/** Allowed SVG elements. Other elements of an icon file are dropped. */
const drawn = new Set(['circle', 'ellipse', 'line', 'path', 'polygon', 'polyline', 'rect'])
