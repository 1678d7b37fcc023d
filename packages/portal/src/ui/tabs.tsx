import { Tabs as Base } from '@base-ui/react/tabs'
import type { ReactNode } from 'react'
import styles from './tabs.module.css'

/** A tab. `name` identifies the tab; `label` is displayed. */
export interface Tab {
  name: string
  label: ReactNode
  content: ReactNode
}

interface TabsProps {
  tabs: readonly Tab[]
  /** Name of the open tab. */
  value: string
  onChange: (name: string) => void
  label: string
}

export const Tabs = ({ tabs, value, onChange, label }: TabsProps) => (
  <Base.Root value={value} onValueChange={(name) => onChange(String(name))}>
    <Base.List className={styles['list']} aria-label={label}>
      {tabs.map((tab) => (
        <Base.Tab key={tab.name} value={tab.name} className={styles['tab']}>
          {tab.label}
        </Base.Tab>
      ))}
    </Base.List>
    {tabs.map((tab) => (
      <Base.Panel key={tab.name} value={tab.name} className={styles['panel']}>
        {tab.content}
      </Base.Panel>
    ))}
  </Base.Root>
)
