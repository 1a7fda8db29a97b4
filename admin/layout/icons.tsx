// Icons of the application, drawn with strokes in a square of 24.
import SvgIcon, { type SvgIconProps } from '@mui/material/SvgIcon'

const STROKES = {
  fill: 'none',
  stroke: 'currentColor',
  strokeWidth: 1.8,
  strokeLinecap: 'round',
  strokeLinejoin: 'round',
}

function createIcon(...paths: readonly string[]) {
  return function Icon({ sx = [], ...props }: SvgIconProps) {
    return (
      <SvgIcon {...props} sx={[STROKES, ...[sx].flat()]}>
        {paths.map((path) => (
          <path key={path} d={path} />
        ))}
      </SvgIcon>
    )
  }
}

export const AddIcon = createIcon('M12 5v14', 'M5 12h14')
export const BackIcon = createIcon('M19 12H5', 'M11 6l-6 6 6 6')
export const CheckIcon = createIcon('M5 12.5l4.5 4.5L19 7.5')
export const CloseIcon = createIcon('M6 6l12 12', 'M18 6L6 18')
export const ColumnsIcon = createIcon('M4 5h16v14H4z', 'M9.5 5v14', 'M15 5v14')
export const CopyIcon = createIcon('M9 9h11v11H9z', 'M15 9V4H4v11h5')
export const DeleteIcon = createIcon('M5 7h14', 'M10 7V4h4v3', 'M7 7l1 13h8l1-13')
export const DownloadIcon = createIcon('M12 4v11', 'M7 11l5 5 5-5', 'M5 20h14')
export const FilterIcon = createIcon('M4 6h16', 'M7 12h10', 'M10 18h4')
export const HistoryIcon = createIcon('M4 12a8 8 0 1 0 2.5-5.8L4 8.5', 'M4 4v4.5h4.5', 'M12 8v4.5l3 2')
export const KeyIcon = createIcon('M14.5 9.5a4 4 0 1 1-2-2', 'M14 10l6 0', 'M18 10v3')
export const MenuIcon = createIcon('M4 7h16', 'M4 12h16', 'M4 17h16')
export const SearchIcon = createIcon('M16 16l4.5 4.5', 'M10.5 17.5a7 7 0 1 1 0-14 7 7 0 0 1 0 14z')
export const UndoIcon = createIcon('M8 5L4 9l4 4', 'M4 9h10a6 6 0 0 1 0 12h-3')
export const UploadIcon = createIcon('M12 16V5', 'M7 10l5-5 5 5', 'M5 20h14')
export const UserIcon = createIcon('M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z', 'M4 20.5c1-4 4-6 8-6s7 2 8 6')
