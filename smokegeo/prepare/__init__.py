"""Turn native frames, in whatever form they were published, into a prepared dataset.

`run.prepare` is the flow on one page; the modules it calls each know one thing:

    download, sums, archive, walk       get the files onto the disk, whole and safe
    find, names, tables                 say which files or rows make up a sample
    forms, matlab, pictures, rasters    read one native file, as data only, into a `native.Native`
    load, mosaic, masks                 make a frame of what was read, or say its fault
    check, faults                       gather all faults; do the good frames belong together?
    divide, lists                       splits and scenario tags, shipped or dealt
"""
