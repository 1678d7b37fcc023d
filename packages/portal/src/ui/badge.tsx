import {
  Ban,
  CircleAlert,
  CircleCheck,
  CircleDashed,
  CircleHelp,
  CircleX,
  LoaderCircle,
  type LucideIcon,
  TriangleAlert,
} from 'lucide-react'
import type { ReactNode } from 'react'
import styles from './badge.module.css'
import { classes } from './class-names.ts'

/** Meaning of a badge's colour. The text repeats it for users who cannot distinguish the colours. */
export type BadgeVariant = 'good' | 'warn' | 'bad' | 'busy' | 'quiet'

interface BadgeProps {
  variant?: BadgeVariant
  icon?: LucideIcon | undefined
  children: ReactNode
  title?: string | undefined
}

export const Badge = ({ variant = 'quiet', icon: Icon, children, title }: BadgeProps) => (
  <span className={classes(styles['badge'], variant !== 'quiet' && styles[variant])} title={title}>
    {Icon && <Icon size={14} aria-hidden />}
    {children}
  </span>
)

const variants: Record<string, [BadgeVariant, LucideIcon]> = {
  Healthy: ['good', CircleCheck],
  Online: ['good', CircleCheck],
  Connected: ['good', CircleCheck],
  Completed: ['good', CircleCheck],
  Installed: ['good', CircleCheck],
  Configured: ['good', CircleCheck],
  Delivered: ['good', CircleCheck],
  Degraded: ['warn', TriangleAlert],
  Stale: ['warn', TriangleAlert],
  Pending: ['busy', CircleDashed],
  Queued: ['busy', CircleDashed],
  Running: ['busy', LoaderCircle],
  Installing: ['busy', LoaderCircle],
  Uninstalling: ['busy', LoaderCircle],
  InProgress: ['busy', LoaderCircle],
  Offered: ['busy', LoaderCircle],
  Offline: ['bad', CircleX],
  Unhealthy: ['bad', CircleX],
  Disconnected: ['bad', CircleX],
  Failed: ['bad', CircleAlert],
  RolledBack: ['bad', CircleAlert],
  Stopped: ['bad', Ban],
  Revoked: ['bad', Ban],
  Cancelled: ['quiet', Ban],
  Unknown: ['quiet', CircleHelp],
}

export function StatusBadge({ status, title }: { status: string; title?: string }) {
  const [variant, icon] = variants[status] ?? ['quiet', undefined]
  return (
    <Badge variant={variant} icon={icon} title={title}>
      {status}
    </Badge>
  )
}

/** Returns the badge variant of a status, for other elements that have the colour of its badge. */
export const variantOf = (status: string): BadgeVariant => variants[status]?.[0] ?? 'quiet'
