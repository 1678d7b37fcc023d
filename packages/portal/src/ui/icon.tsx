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
  Network,
  Puzzle,
  ScrollText,
  Server,
  SquareTerminal,
  Users,
  Webhook,
} from 'lucide-react'
import { createElement } from 'react'

// The icons of the platform's own navigation entries. Others are fetched.
const bundledIcons: Record<string, LucideIcon> = {
  bell: Bell,
  blocks: Blocks,
  'building-2': Building2,
  'circle-arrow-up': CircleArrowUp,
  'circle-user': CircleUser,
  'heart-pulse': HeartPulse,
  'key-round': KeyRound,
  'layout-dashboard': LayoutDashboard,
  network: Network,
  'scroll-text': ScrollText,
  server: Server,
  'square-terminal': SquareTerminal,
  users: Users,
  webhook: Webhook,
}

type IconElement = readonly [tag: string, attributes: Readonly<Record<string, string>>]

/** An icon by its Lucide name, which a module manifest may contain. */
export function Icon({ name, size = 18 }: { name: string; size?: number }) {
  // `name` may be a property of `Object.prototype`.
  const Bundled = Object.hasOwn(bundledIcons, name) ? bundledIcons[name] : undefined
  return Bundled ? <Bundled size={size} aria-hidden /> : <FetchedIcon name={name} size={size} />
}

function FetchedIcon({ name, size }: { name: string; size: number }) {
  const letter = /^[a-z]/.exec(name)?.[0]
  const { data } = useQuery({
    queryKey: ['icons', letter],
    enabled: letter !== undefined,
    staleTime: Infinity,
    queryFn: async (): Promise<Record<string, IconElement[]>> => (await fetch(`/icons/${letter}.json`)).json(),
  })
  const elements = data && Object.hasOwn(data, name) ? data[name] : undefined
  if (!Array.isArray(elements)) return <Puzzle size={size} aria-hidden />
  return (
    <svg viewBox="0 0 24 24" width={size} height={size} className="lucide" aria-hidden fill="none">
      {elements.filter(([tag]) => allowedElements.has(tag)).map(([tag, attributes]) => createElement(tag, attributes))}
    </svg>
  )
}

// Other elements of an icon file are dropped.
const allowedElements = new Set(['circle', 'ellipse', 'line', 'path', 'polygon', 'polyline', 'rect'])
