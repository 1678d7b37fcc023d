import { useQuery } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { CheckGroup } from '../../ui/field.tsx'
import { Loaded } from '../../ui/state.tsx'

export type Role = Schemas['RoleDescription']['name']

export const rolesQuery = {
  queryKey: ['roles'],
  queryFn: () => unwrap(api.GET('/api/v1/roles')),
  staleTime: Infinity,
}

interface RolesFieldProps {
  chosen: readonly Role[]
  onChange: (roles: Role[]) => void
  problem: string | undefined
}

/** Selects roles. Roles that the user may not grant are disabled. */
export function RolesField({ chosen, onChange, problem }: RolesFieldProps) {
  const query = useQuery(rolesQuery)
  return (
    <Loaded query={query} what="the roles">
      {({ items }) => (
        <CheckGroup
          label="Roles"
          choices={items.map(({ name, grantable }) => ({
            value: name,
            label: name,
            hint: grantable ? roleTexts[name] : 'Exceeds your own permissions.',
            isDisabled: !grantable,
          }))}
          chosen={chosen}
          onChange={onChange}
          problem={problem}
        />
      )}
    </Loaded>
  )
}

const roleTexts: Readonly<Record<Role, string>> = {
  PlatformAdmin: 'Everything, including organisations, identity providers and updates.',
  OrgAdmin: 'Manages the organisation: clusters, jobs, users, webhooks and the audit trail.',
  ClusterAdmin: 'Registers, changes and removes clusters, and runs jobs.',
  Operator: 'Views clusters and runs jobs.',
  Viewer: 'Views clusters, jobs and modules.',
  Auditor: 'Views clusters, jobs and modules, and reads the audit trail.',
}
