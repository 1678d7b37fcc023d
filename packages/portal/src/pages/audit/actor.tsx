import type { Schemas } from '../../api/client.ts'
import { useUserName } from '../users/use-user-name.ts'

interface ActorProps {
  actor: Schemas['AuditActor']
  /** Whether to show the id next to the name. */
  isWhole?: boolean
}

/** The name of a visible user, else the id. */
export function Actor({ actor: { kind, id }, isWhole = false }: ActorProps) {
  const name = useUserName(id)
  if (kind === 'system') return 'the platform'
  if (name === undefined) return <code>{id}</code>
  return isWhole ? (
    <>
      {name} <code>{id}</code>
    </>
  ) : (
    <span title={id}>{name}</span>
  )
}
