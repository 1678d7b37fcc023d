import { useQuery } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { permissionTexts } from '../../api/permissions.ts'
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

/** Selects roles and shows their permissions. Roles that the user may not grant are disabled. */
export function RolesField({ chosen, onChange, problem }: RolesFieldProps) {
  const query = useQuery(rolesQuery)
  return (
    <Loaded query={query} what="the roles">
      {({ items }) => (
        <CheckGroup
          label="Roles"
          choices={items.map(({ name, permissions, grantable }) => ({
            value: name,
            label: name,
            hint: grantable ? permissionList(permissions) : 'Exceeds your own permissions.',
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

const permissionList = (permissions: Schemas['RoleDescription']['permissions']): string =>
  permissions.map((permission) => permissionTexts[permission]).join('. ')
