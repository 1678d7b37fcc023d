import { Autocomplete } from '@base-ui/react/autocomplete'
import { Dialog } from '@base-ui/react/dialog'
import { Search } from 'lucide-react'
import { useRef, useState } from 'react'
import { Icon } from '../ui/icon.tsx'
import styles from './palette.module.css'
import { type Command, type CommandGroup, useCommands } from './use-commands.ts'

const lookId = 'palette-look'

/** Finds pages, actions, clusters by name and resources by id. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const { groups, isSearching } = useCommands(text)
  const goes = useRef(false)
  const run = (command: Command) => {
    goes.current = command.isPlace ?? false
    onClose()
    command.run()
  }
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={styles['veil']} />
        <Dialog.Popup
          className={styles['palette']}
          aria-label="Search and commands"
          // On another page the shell sets the focus.
          finalFocus={() => !goes.current}
        >
          <Autocomplete.Root
            open
            inline
            mode="none"
            items={groups}
            value={text}
            // A chosen item runs and is not written into the field.
            onValueChange={(value, { reason }) => reason !== 'item-press' && setText(value)}
            itemToStringValue={({ label }: Command) => label}
            autoHighlight="always"
            keepHighlight
          >
            <div className={styles['field']}>
              <Search size={18} aria-hidden />
              <Autocomplete.Input
                aria-label="Search and commands"
                aria-describedby={lookId}
                placeholder="Page, action, cluster or id"
                maxLength={200}
                className={styles['input']}
              />
              <Dialog.Close className={styles['close']}>Esc</Dialog.Close>
            </div>
            <Autocomplete.Status id={lookId} className={styles['status']}>
              {isSearching ? 'Searching clusters …' : 'Use the arrow keys and Enter.'}
            </Autocomplete.Status>
            <Autocomplete.Empty className={styles['empty']}>
              {!isSearching && text !== '' && 'No results.'}
            </Autocomplete.Empty>
            <Autocomplete.List className={styles['list']}>
              {(group: CommandGroup) => <Group key={group.value} group={group} onRun={run} />}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

const Group = ({ group, onRun }: { group: CommandGroup; onRun: (command: Command) => void }) => (
  <Autocomplete.Group items={group.items}>
    <Autocomplete.GroupLabel className={styles['heading']}>{group.value}</Autocomplete.GroupLabel>
    <Autocomplete.Collection>
      {(command: Command) => (
        <Autocomplete.Item key={command.id} value={command} className={styles['item']} onClick={() => onRun(command)}>
          <Icon name={command.icon} size={16} />
          <span>{command.label}</span>
        </Autocomplete.Item>
      )}
    </Autocomplete.Collection>
  </Autocomplete.Group>
)
