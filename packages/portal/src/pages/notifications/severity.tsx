import { CircleAlert, Info, TriangleAlert } from 'lucide-react'
import type { Schemas } from '../../api/client.ts'
import { Badge, type BadgeVariant } from '../../ui/badge.tsx'

const looks = {
  info: ['Info', 'quiet', Info],
  warning: ['Warning', 'warn', TriangleAlert],
  critical: ['Critical', 'bad', CircleAlert],
} as const satisfies Record<Schemas['Notification']['severity'], readonly [string, BadgeVariant, unknown]>

export function Severity({ severity }: Pick<Schemas['Notification'], 'severity'>) {
  const [word, tone, icon] = looks[severity]
  return (
    <Badge tone={tone} icon={icon}>
      {word}
    </Badge>
  )
}
