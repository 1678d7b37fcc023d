import { Lock } from 'lucide-react'
import type { ReactNode } from 'react'
import { type Permission, useHasPermission } from '../api/account.ts'
import { Page } from '../ui/page.tsx'
import { EmptyState } from '../ui/state.tsx'

interface RequirePermissionProps {
  permission: Permission
  title: string
  children: ReactNode
}

/** A page that requires a permission. Other users see the name of the permission. */
export const RequirePermission = ({ permission, title, children }: RequirePermissionProps) =>
  useHasPermission(permission) ? (
    children
  ) : (
    <Page title={title}>
      <EmptyState icon={Lock} title="Access denied">
        Requires the permission <code>{permission}</code>. Ask an administrator for a role that includes it.
      </EmptyState>
    </Page>
  )
