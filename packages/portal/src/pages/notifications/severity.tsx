import { CircleAlert, Info, TriangleAlert } from 'lucide-react'
import type { Schemas } from '../../api/client.ts'
import { Badge, type BadgeVariant } from '../../ui/badge.tsx'

const variants = {
  info: ['Info', 'quiet', Info],
  warning: ['Warning', 'warn', TriangleAlert],
  critical: ['Critical', 'bad', CircleAlert],
} as const satisfies Record<Schemas['Notification']['severity'], readonly [string, BadgeVariant, unknown]>

export function Severity({ severity }: Pick<Schemas['Notification'], 'severity'>) {
  const [word, variant, icon] = variants[severity]
  return (
    <Badge variant={variant} icon={icon}>
      {word}
    </Badge>
  )
}
