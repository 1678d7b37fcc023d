import { Lock } from 'lucide-react'
import type { ReactNode } from 'react'
import { type Permission, useHasPermission } from '../api/account.ts'
import { Page } from '../ui/page.tsx'
import { EmptyState } from '../ui/state.tsx'

interface OnlyWithProps {
  permission: Permission
  /** The heading of the page, as it is for who may see it. */
  title: string
  children: ReactNode
}

/** A page for those who hold a permission. Others are told so, instead of being shown what the platform refuses them. */
export const RequirePermission = ({ permission, title, children }: OnlyWithProps) =>
  useHasPermission(permission) ? (
    children
  ) : (
    <Page title={title}>
      <EmptyState icon={Lock} title="You may not see this page">
        It takes the permission <code>{permission}</code>. Ask an administrator for a role that has it.
      </EmptyState>
    </Page>
  )
