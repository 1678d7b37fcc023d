import type { Schemas } from '../../api/client.ts'
import { useUserName } from '../users/use-user-name.ts'

interface ActorProps {
  actor: Schemas['AuditActor']
  /** Whether the id stands beside the name. */
  isWhole?: boolean
}

/** Who did something: by name, where it is a user whose name one may know; else by id. */
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
